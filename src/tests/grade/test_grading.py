import dataclasses
import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from slimwise.artifacts.grades import read_grades
from slimwise.artifacts.parquet_rows import read_rows_provenance
from slimwise.artifacts.samples import write_samples
from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.backbones.mini.tasks.split import Split, draw_items
from slimwise.benchmarks.settings import GradingLimits
from slimwise.errors import ConfigError
from slimwise.grade.config import GradeConfig
from slimwise.grade.grading import grade_samples
from slimwise.grade.run import run
from slimwise.provenance import Provenance

PROVENANCE = Provenance(
    "abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores", {}, "pytest", {"gsm8k": "somewhere"}
)
LIMITS = GradingLimits(
    workers=2,
    maths_timeout_s=30,
    program_time_s=20,
    program_memory_gib=1,
    cache=Path("never used"),
)
RIGHT = "3+4=7\n</think>\n\nThe answer is \\boxed{7}."


def sample(content: str, *, finish_reason: str = "stop", **fields) -> dict:
    return {
        "decoder": "reap-m32",
        "mode": "pruned",
        "deployment": "colocated",
        "benchmark": "mini_maths",
        "item_id": "0",
        "run": 0,
        "decoding": "greedy",
        "seed": 0,
        "content": content,
        "reasoning": "",
        "thought_split": False,
        "tool_calls": "[]",
        "finish_reason": finish_reason,
        "prompt_tokens": 10,
        "completion_tokens": 20,
        "latency_s": 0.5,
        "attempts": 1,
        "reference": json.dumps({"value": 7}),
    } | fields


@pytest.fixture
def grade(tmp_path):
    """A function from an answer to its row of grades."""

    def grade_one(content: str, **fields):
        limits = dataclasses.replace(LIMITS, cache=tmp_path)
        return grade_samples(pd.DataFrame([sample(content, **fields)]), limits).iloc[0]

    return grade_one


def test_a_right_answer_is_right(grade):
    graded = grade(RIGHT)
    assert graded["correct"]
    assert graded["extracted"] == "7"
    assert not graded["hit_budget"]


def test_a_thought_that_never_ended_is_wrong_whatever_it_drafts(grade):
    graded = grade("a draft: \\boxed{7}")
    assert not graded["correct"]
    assert graded["reason"] == "the thought never ended"


def test_a_draft_in_the_thought_is_not_graded(grade):
    assert not grade("\\boxed{7}\n</think>\n\nThe answer is \\boxed{8}.")["correct"]


def test_a_thought_may_say_anything_without_being_cut_or_graded(grade):
    thought = "Question: how many?\n#### 8\n```python\ndef f(): return 8\n```\nWait:"
    assert grade(f"{thought}\n{RIGHT}")["correct"]
    fields = {"benchmark": "gsm8k", "reference": json.dumps({"answer": "8"})}
    assert not grade(f"{thought}\n</think>\n#### 7", **fields)["correct"]


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
def test_a_draft_program_in_the_thought_is_not_graded(grade):
    program = "def square(n):\n    return n * n\n"
    test = (
        "def assertion(out, exp, atol):\n    assert out == exp\n"
        "inputs = [[3]]\nresults = [9]\n"
        "for inp, exp in zip(inputs, results):\n    assertion(square(*inp), exp, 0)\n"
    )
    reference = {
        "task_id": "Made/1",
        "entry_point": "square",
        "preamble": "",
        "canonical_solution": program,
        "test": test,
        "assertions": [],
    }
    fields = {"benchmark": "mbpp_plus", "reference": json.dumps(reference)}
    draft = f"```python\n{program}```"
    assert grade(f"</think>\n{draft}", **fields)["correct"]
    graded = grade(f"{draft}\n</think>\nI do not know.", **fields)
    assert graded["reason"] == "no code block defines square"


@pytest.mark.parametrize("content", [RIGHT, "3+4"])
def test_an_answer_cut_by_the_budget_is_wrong_and_counted(grade, content):
    graded = grade(content, finish_reason="length")
    assert not graded["correct"]
    assert graded["hit_budget"]
    assert graded["completion_tokens"] == 20


def test_a_thought_that_the_server_split_off_is_not_graded(grade):
    fields = {"thought_split": True, "reasoning": "a draft: \\boxed{8}"}
    assert grade("The answer is \\boxed{7}.", **fields)["correct"]
    assert not grade("", **fields)["correct"]


def test_an_answer_that_the_server_took_for_all_thought_never_ended_it(grade):
    fields = {"thought_split": True, "reasoning": "a draft: \\boxed{7}"}
    assert grade("\n", **fields)["reason"] == "the thought never ended"
    assert grade("I do not know.", **fields)["reason"] != "the thought never ended"


def test_a_call_that_the_server_dropped_is_left_to_the_grader_of_calls(grade):
    pytest.importorskip("bfcl_eval")
    fields = {"thought_split": True, "reasoning": "no function fits, or does one?"}
    reference = {"category": "irrelevance", "functions": [], "possible": []}
    graded = grade("", benchmark="bfcl_v4_irrelevance", reference=json.dumps(reference), **fields)
    assert graded["correct"]
    assert json.loads(graded["findings"])["undecodable"]


@pytest.mark.parametrize("name", list(GRADED))
def test_worked_responses_score_100_per_cent(name):
    items = draw_items(GRADED[name], 20, 1, Split.TEST)
    samples = [
        sample(item.response, benchmark=f"mini_{name}", reference=json.dumps(item.reference))
        for item in items
    ]
    assert grade_samples(pd.DataFrame(samples), LIMITS)["correct"].all()


def test_an_unknown_benchmark_is_named(grade):
    with pytest.raises(ConfigError, match="'mini_math' is not a benchmark; did you mean"):
        grade(RIGHT, benchmark="mini_math")


@pytest.fixture
def graded(tmp_path):
    """A function that saves samples, grades them by the stage, and returns its files' folder."""

    def grade_saved(name: str, *samples: dict) -> Path:
        saved, folder = tmp_path / f"{name}.parquet", tmp_path / name
        write_samples(saved, [pd.DataFrame(samples)], PROVENANCE)
        run(
            GradeConfig(maths_timeout_s=30),
            samples=saved,
            out=folder / "grades.parquet",
            disagreements=folder / "disagreements.csv",
            cache=tmp_path / "cache",
        )
        return folder

    return grade_saved


def test_equal_samples_give_equal_grades_in_the_same_order(graded):
    samples = [sample(RIGHT, item_id="1"), sample("no", item_id="0")]
    first, second = (
        read_grades(graded(name, *samples) / "grades.parquet") for name in ("first", "second")
    )
    assert first.equals(second)
    assert list(first["item_id"]) == ["1", "0"]


def test_grades_say_what_data_the_answers_were_about(graded):
    provenance = read_rows_provenance(graded("any", sample(RIGHT)) / "grades.parquet")
    assert provenance.data == PROVENANCE.data


def test_comparisons_that_disagree_are_listed(graded):
    fields = {"benchmark": "math_500", "reference": json.dumps({"answer": "1/2004!"})}
    folder = graded(
        "disputed",
        sample("</think>\\boxed{\\frac{1}{2006!}}", item_id="tiny", **fields),
        sample("</think>\\boxed{7}", item_id="plain", **fields),
    )
    listed = pd.read_csv(folder / "disagreements.csv")
    assert list(listed["item_id"]) == ["tiny"]
    assert json.loads(listed["findings"][0]) == {"math_verify": True, "same_values": False}
    assert not listed["correct"][0]
