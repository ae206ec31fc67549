import shutil

import pytest

from slimwise.benchmarks.code.grading import grade_program
from slimwise.benchmarks.code.sandbox import ProgramLimits

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
LIMITS = ProgramLimits(time_s=20, memory_gib=1)
ASSERTION = "def assertion(out, exp, atol):\n    assert out == exp\n"
LOOP = "for inp, exp in zip(inputs, results):\n    assertion(answer(*inp), exp, 0)\n"


def grade(body: str, *, inputs="[[2], [5]]", results="[4, 25]", assertion=ASSERTION):
    test = f"{assertion}\ninputs = {inputs}\nresults = {results}\n{LOOP}"
    return grade_program(f"def answer(n):\n    {body}\n", "answer", test, LIMITS)


def test_right_and_wrong_programs():
    assert grade("return n * n").correct
    assert grade("return n + n").reason == "input 1: ['int', 'a']"


def test_an_object_that_equals_everything_fails():
    assert not grade("return type('Sly', (), {'__eq__': lambda *_: True})()").correct
    assert not grade("return type('Sly', (int,), {'__eq__': lambda *_: True})(9)").correct


def test_floats_may_differ_in_their_last_digits():
    assert grade("return n / 3", inputs="[[1.0]]", results="[0.33333334]").correct
    assert not grade("return n / 3", inputs="[[1.0]]", results="[0.3334]").correct


def test_a_shorter_list_of_floats_is_not_stretched():
    assert not grade("return [n]", inputs="[[0.5]]", results="[[0.5, 0.5]]").correct


def test_set_assertions_ignore_order():
    as_sets = "def assertion(out, exp, atol):\n    assert set(out) == set(exp)\n"
    assert grade("return [2, n]", inputs="[[1]]", results="[(1, 2)]", assertion=as_sets).correct


def test_results_may_come_from_a_reference_function():
    reference = "def ref_func(n):\n    return n ** 3\n"
    test = f"{ASSERTION}{reference}\ninputs = [[2], [3]]\n"
    test += "for inp in inputs:\n    assertion(answer(*inp), ref_func(*inp), 0)\n"
    assert grade_program("answer = lambda n: n * n * n", "answer", test, LIMITS).correct
    assert not grade_program("answer = lambda n: n * n", "answer", test, LIMITS).correct


@pytest.mark.parametrize(
    ("body", "correct"),
    [
        ("return [i / 2 for i in range(n)]", True),
        ("return [i / 2 + 1e-8 for i in range(n)]", True),
        ("return [i / 2 + 1e-3 for i in range(n)]", False),
        ("return [i // 2 if i % 2 == 0 else i / 2 for i in range(n)]", True),
        ("return [i / 2 for i in range(n - 1)]", False),
        ("return [i * 2**70 for i in range(n)]", False),
    ],
    ids=["equal", "close", "far", "some are ints", "short", "too large to pack"],
)
def test_long_lists_of_numbers_are_compared_as_numbers(body, correct):
    results = repr([[i / 2 for i in range(200)]])
    assert grade(body, inputs="[[200]]", results=results).correct is correct


@pytest.mark.parametrize(
    ("body", "correct"),
    [("(i, 'x')", True), ("[i, 'x']", False), ("(i, 'x' if i < n - 1 else 'y')", False)],
    ids=["equal", "other type", "last row differs"],
)
def test_more_rows_than_can_be_written_down_must_be_equal(body, correct):
    reference = "def ref_func(n):\n    return [(i, 'x') for i in range(n)]\n"
    test = f"{ASSERTION}{reference}\ninputs = [[60000]]\n"
    test += "for inp in inputs:\n    assertion(rows(*inp), ref_func(*inp), 0)\n"
    source = f"def rows(n):\n    return [{body} for i in range(n)]\n"
    assert grade_program(source, "rows", test, LIMITS).correct is correct
