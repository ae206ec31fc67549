import json
from pathlib import Path

import pytest

from slimwise.benchmarks.maths.final_answer import final_answer, join_digits
from slimwise.benchmarks.maths.grading import MathsGrader

# Pairs that broke other graders, if a checkout has the collection beside it.
PAIRS = next(Path(__file__).parents[5].glob("*/cases/math_grading.jsonl"), Path("absent"))


@pytest.fixture(scope="module")
def grader():
    with MathsGrader(timeout_s=30) as started:
        yield started


@pytest.mark.skipif(not PAIRS.is_file(), reason="needs the collection of grading pairs")
def test_every_collected_pair_is_graded_right(grader):
    pairs = [json.loads(line) for line in PAIRS.read_text("utf-8").splitlines()]
    wrong = [
        pair["id"]
        for pair in pairs
        if grader.grade(pair["answer"], pair["gold"]).correct != pair["correct"]
    ]
    assert not wrong


@pytest.mark.parametrize(
    ("gold", "solution", "correct"),
    [
        ("12000", "\\boxed{12\\,000}", True),
        ("0.25", "\\boxed{25\\%}", True),
        ("0.25", "\\boxed{2.5\\%}", False),
        ("3/10^{40}", "\\boxed{4/10^{40}}", False),
        ("|x|", "\\boxed{x}", False),
        ("x+y", "\\boxed{2x}", False),
        ("\\frac{a}{b}", "\\boxed{\\frac{b}{a}}", False),
        ("\\sqrt{\\frac{2}{k}}", "\\boxed{\\frac{\\sqrt{2}}{\\sqrt{k}}}", True),
        ("7", "a draft \\boxed{7}, but no: \\boxed{8}", False),
        ("7", "", False),
    ],
)
def test_other_pairs_of_the_same_kinds(grader, gold, solution, correct):
    assert grader.grade(solution, gold).correct is correct


def test_a_comparison_that_hangs_costs_one_item():
    with MathsGrader(timeout_s=20) as grader:
        assert grader.grade("\\boxed{2}", "2").correct
        grader._timeout_s = 0.0
        assert grader.grade("\\boxed{3}", "3").reason == "not compared within 0 s"
        grader._timeout_s = 20
        assert grader.grade("\\boxed{4}", "4").correct


def test_an_unclosed_box_is_no_box():
    assert final_answer("so \\boxed{5} or \\boxed{6") == "$5$"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("90 of 450 are 20%\n#### 20", "$20$"),
        ("#### 7\nNo:\n#### 1,080\n", "$1,080$"),
        ("#### 7\nso \\boxed{8}", "$8$"),
        ("#### 3. Sum up\nIt is 12.", "#### 3. Sum up\nIt is 12."),
    ],
    ids=["percentage before", "last", "box first", "heading"],
)
def test_a_marked_line_is_the_answer_of_a_text_without_a_box(text, answer):
    assert final_answer(text) == answer


def test_only_groups_of_three_digits_are_joined():
    assert join_digits("1 000, 2 00, 3{,}141 and 5 0000") == "1000, 2 00, 3141 and 5 0000"
