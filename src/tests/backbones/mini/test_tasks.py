"""Task families: gold answers are right, wrong ones are not, and no program gets out."""

import json
import random

import pytest

from slimwise.backbones.mini.chat import split_thought
from slimwise.backbones.mini.tasks.program import last_program, refusal, run_program
from slimwise.backbones.mini.tasks.registry import BACKGROUND, GRADED
from slimwise.backbones.mini.tasks.split import Split, draw_items, split_of

FAMILIES = {**GRADED, **BACKGROUND}


@pytest.mark.parametrize("name", FAMILIES)
def test_gold_responses_are_right(name: str) -> None:
    family, rng = FAMILIES[name], random.Random(3)
    for _ in range(60):
        item = family.draw(rng)
        _, answer = split_thought(item.response)
        assert answer is not None
        assert family.grade(answer, json.loads(json.dumps(item.reference))).correct


@pytest.mark.parametrize("name", FAMILIES)
def test_another_items_answer_is_wrong(name: str) -> None:
    family, rng = FAMILIES[name], random.Random(4)
    for _ in range(30):
        item, other = family.draw(rng), family.draw(rng)
        if item.reference == other.reference or name == "code":
            continue
        _, answer = split_thought(other.response)
        assert not family.grade(answer or "", item.reference).correct


def test_a_wrong_program_is_wrong() -> None:
    reference = {"entry": "f", "inputs": [[1, 2]], "outputs": [3]}
    grade = GRADED["code"].grade
    assert grade("```python\ndef f(xs):\n    return sum(xs)\n```", reference).correct
    assert not grade("```python\ndef f(xs):\n    return len(xs)\n```", reference).correct
    assert not grade("def f(xs):\n    return sum(xs)", reference).correct


def test_the_last_block_with_the_entry_point_counts() -> None:
    answer = "```python\ndef f(xs): pass\n```\n```python\ndef f(xs): return 1\n```\n```\nf([])\n```"
    assert last_program(answer, "f") == "def f(xs): return 1\n"


@pytest.mark.parametrize(
    "source",
    [
        "import os",
        "def f(xs): return xs.__class__",
        "class A: pass",
        "def f(xs): return __builtins__",
        "def f(xs: return",
    ],
)
def test_constructs_that_no_answer_needs_are_refused(source: str) -> None:
    assert refusal(source)


@pytest.mark.parametrize(
    "body",
    [
        "[0] * (1 << 40)",
        "sum(range(10 ** 12))",
        "open('/etc/passwd').read()",
        "f(xs)",
        "{1, 2}",
        "9 ** 9 ** 9",
    ],
)
def test_a_hostile_program_fails_and_the_next_one_runs(body: str) -> None:
    outputs, why = run_program(f"def f(xs):\n    return {body}\n", "f", [[1]])
    assert outputs is None
    assert why
    assert run_program("def f(xs):\n    return xs[::-1]\n", "f", [[1, 2]]) == ([[2, 1]], "")


def test_tool_calls_compare_json_types_but_not_order() -> None:
    grade = GRADED["tools"].grade
    first = {"name": "a", "arguments": {"x": 1, "y": True}}
    second = {"name": "b", "arguments": {}}

    def answer(*calls: object) -> str:
        return "".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)

    assert grade(answer(second, first), {"calls": [first, second]}).correct
    loose = {"name": "a", "arguments": {"x": True, "y": 1}}
    assert not grade(answer(loose, second), {"calls": [first, second]}).correct
    assert not grade(answer(first), {"calls": [first, second]}).correct
    assert grade("<tool_call>{</tool_call>", {"calls": [first]}).reason == "a call is not JSON"


def test_splits_never_meet_and_draws_repeat() -> None:
    family = GRADED["maths"]
    test_items = draw_items(family, 50, 1, Split.TEST)
    assert {split_of(item) for item in test_items} == {Split.TEST}
    assert len({item.prompt for item in test_items}) == 50
    assert test_items == draw_items(family, 50, 1, Split.TEST)
    train_prompts = {item.prompt for item in draw_items(family, 200, 1, Split.TRAIN)}
    assert not train_prompts & {item.prompt for item in test_items}
