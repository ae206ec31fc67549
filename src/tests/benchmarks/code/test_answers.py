import dataclasses
import re
import shutil
from collections.abc import Mapping
from typing import Any

import pytest

from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.base import Answer
from slimwise.benchmarks.code.answers import program_grader
from slimwise.benchmarks.code.human_eval import BROKEN
from slimwise.benchmarks.registry import benchmark_named
from slimwise.errors import GradingError

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")

TEST = """
def assertion(out, exp, atol):
    assert out == exp

inputs = [[2], [5]]
results = [4, 25]
for inp, exp in zip(inputs, results):
    assertion(square(*inp), exp, 0)
"""
REFERENCE: Mapping[str, Any] = {
    "task_id": "Made/1",
    "entry_point": "square",
    "preamble": "def times(a, b):\n    return a * b\n",
    "canonical_solution": "def square(n):\n    return n * n\n",
    "test": TEST,
    "assertions": ["assert square(2) == 4", "assert square(0) == 0", "assert square(1) == 1"],
}


def answer(body: str) -> Answer:
    return Answer(f"So:\n```python\ndef square(n):\n    {body}\n```\n")


@pytest.fixture
def grade(limits):
    with program_grader([REFERENCE], limits) as grade:
        yield lambda body: grade(answer(body), REFERENCE)


def test_a_right_answer_is_right_by_every_score(grade):
    verdict = grade("return n * n")
    assert verdict.correct
    assert verdict.extracted == "def square(n):\n    return n * n\n"
    assert verdict.findings == {"lm_eval_mbpp_plus": True, "lm_eval_mbpp_plus_instruct": True}


def test_lm_evals_scores_read_the_first_assertions_only(grade):
    verdict = grade("return 4 if n == 2 else n")
    assert not verdict.correct
    assert verdict.findings == {"lm_eval_mbpp_plus": True, "lm_eval_mbpp_plus_instruct": True}
    verdict = grade("return 4 if n == 2 else 9")
    assert verdict.findings == {"lm_eval_mbpp_plus": False, "lm_eval_mbpp_plus_instruct": True}


def test_what_the_prompt_defines_need_not_be_repeated(grade):
    assert grade("return times(n, n)").correct


def test_an_answer_without_the_function_is_wrong_without_running(limits):
    with program_grader([REFERENCE], limits) as grade:
        verdict = grade(Answer("It is n times n."), REFERENCE)
    assert verdict.reason == "no code block defines square"


def test_an_answer_that_ends_the_process_fails_every_score(grade):
    verdict = grade("import os; os._exit(0)")
    assert verdict.reason == "stopped at its limits"
    assert not any(verdict.findings.values())


def broken(reference: Mapping[str, Any] = REFERENCE) -> dict[str, Any]:
    return {**reference, "canonical_solution": "def square(n):\n    return n + n\n"}


def test_nothing_is_graded_where_a_published_solution_fails(limits):
    with (
        pytest.raises(GradingError, match=r"Made/1 \(input 1: \['int', 'a'\]\).*program_time_s"),
        program_grader([REFERENCE, broken()], limits),
    ):
        pass


def test_an_item_that_is_known_as_broken_stops_nothing(limits):
    with program_grader([broken()], limits, {"Made/1": "made so"}) as grade:
        assert grade(answer("return n * n"), REFERENCE).correct


def test_solutions_that_passed_are_not_run_again(limits, monkeypatch):
    with program_grader([REFERENCE], limits):
        pass
    monkeypatch.setattr(
        "slimwise.benchmarks.code.answers.grade_program",
        lambda *_: Verdict(False, "", "run again"),
    )
    with program_grader([REFERENCE], limits):
        pass
    other = dataclasses.replace(limits, program_time_s=1)
    with pytest.raises(GradingError, match="run again"), program_grader([REFERENCE], other):
        pass


def wrong(program: str, entry: str) -> str:
    """The program with its function put out of use."""
    return f"{program}\n\ndef {entry}(*_):\n    return 'wrong'\n"


# The broken one, the largest outputs, match objects; then a sample.
CHOSEN = {
    "humaneval_plus": ["HumanEval/15", "HumanEval/32", "HumanEval/130"],
    "mbpp_plus": ["Mbpp/737"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CHOSEN))
def test_published_solutions_are_right_and_spoilt_ones_wrong(name, data, limits):
    benchmark = benchmark_named(name, data)
    items = benchmark.items(1000)
    chosen = [item for item in items if item.item_id in CHOSEN[name]] + items[::40]
    references = [item.reference for item in chosen]
    # Entering grades every published solution, and raises if one fails.
    with benchmark.grader(references, limits) as grade:
        for reference in references:
            spoilt = wrong(reference["canonical_solution"], reference["entry_point"])
            assert not grade(Answer(f"```python\n{spoilt}\n```"), reference).correct


def test_items_known_as_broken_fail_with_their_published_solutions(data, limits):
    items = benchmark_named("humaneval_plus", data).items(1000)
    with benchmark_named("humaneval_plus", data).grader([], limits) as grade:
        for item in items:
            if item.item_id in BROKEN:
                solution = item.reference["canonical_solution"]
                assert not grade(Answer(f"```python\n{solution}\n```"), item.reference).correct


def test_every_reference_names_what_its_prompt_asks_for(data):
    for name in CHOSEN:
        for item in benchmark_named(name, data).items(1000):
            entry = item.reference["entry_point"]
            assert re.search(rf"\b{entry}\b", item.messages[-1]["content"]), item.item_id
