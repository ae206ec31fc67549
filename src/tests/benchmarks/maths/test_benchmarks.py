"""GSM8K and MATH-500: what is published as right is right, and what is not is not."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from slimwise.benchmarks.base import Answer
from slimwise.benchmarks.data import read_data
from slimwise.benchmarks.maths import gsm8k, math_500
from slimwise.benchmarks.maths.gsm8k import gold_answer
from slimwise.benchmarks.registry import benchmark_named

SOLUTIONS = {
    "gsm8k": lambda data: [row["answer"] for row in read_data(gsm8k.TEST, data.folder).rows],
    "math_500": lambda data: [
        f"So the answer is \\boxed{{{row['answer']}}}."
        for row in read_data(math_500.TEST, data.folder).rows
    ],
}
NUM_ITEMS = 500


@pytest.mark.slow
@pytest.mark.parametrize("name", list(SOLUTIONS))
def test_gold_answers_score_100_per_cent_and_shifted_ones_nothing(name, data, limits):
    benchmark = benchmark_named(name, data)
    golds = [item.reference for item in benchmark.items(NUM_ITEMS)]
    solutions = [Answer(text) for text in SOLUTIONS[name](data)[:NUM_ITEMS]]
    with benchmark.grader(golds, limits) as grade, ThreadPoolExecutor(limits.workers) as pool:
        right = list(pool.map(grade, solutions, golds))
        shifted = list(pool.map(grade, [*solutions[1:], solutions[0]], golds))
    assert all(verdict.correct for verdict in right)
    # Neighbours with one answer are few; everything else that passed would be a false positive.
    same = [
        one["answer"].removeprefix("x=") == other["answer"].removeprefix("x=")
        for one, other in zip(golds, [*golds[1:], golds[0]], strict=True)
    ]
    assert [verdict.correct for verdict in shifted] == same


def test_gold_answers_of_gsm8k_are_bare_numbers():
    assert gold_answer("6 + 4 = <<6+4=10>>10.\n#### 1,080") == "1,080"


def test_a_comparison_that_never_ends_leaves_the_other_worker_grading(limits):
    limits = replace(limits, maths_timeout_s=5)
    with benchmark_named("gsm8k").grader([], limits) as grade, ThreadPoolExecutor(2) as pool:
        grade(Answer("\\boxed{1}"), {"answer": "1"})
        endless = pool.submit(grade, Answer("\\boxed{(10^{10})!}"), {"answer": "5"})
        others = [pool.submit(grade, Answer(f"\\boxed{{{n}}}"), {"answer": "7"}) for n in range(9)]
        assert [each.result().correct for each in others].count(True) == 1
        assert endless.result().reason == "not compared within 5 s"
