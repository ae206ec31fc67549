import statistics

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slimwise.errors import ArtifactError
from slimwise.report.statistics.answers import by_item_and_run, check_same_items, item_weights
from slimwise.report.statistics.runs import accuracy_by_run, mean_and_deviation
from slimwise.report.statistics.termination import budget_hit_rate, termination_rate


def test_three_runs_by_hand():
    # sqrt((0.0625 + 0 + 0.0625) / 2)
    assert mean_and_deviation(np.array([0.75, 0.5, 0.25])) == pytest.approx((0.5, 0.25))


def test_accuracy_of_a_run_counts_items_by_their_weights():
    correct_IR = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert accuracy_by_run(correct_IR, np.array([3.0, 1.0])) == pytest.approx([0.75, 0.25])


def test_items_of_a_published_mean_over_categories_count_by_category():
    # Two items of one category, one of another: each category is half of the mean.
    ids = ["irrelevance_0", "irrelevance_1", "live_irrelevance_0"]
    answers = pd.DataFrame({"benchmark": "bfcl_v4_irrelevance", "item_id": [*ids, *ids[:1]]})
    assert item_weights(answers) == pytest.approx([0.75, 0.75, 1.5])
    assert item_weights(answers.assign(benchmark="gsm8k")).tolist() == [1, 1, 1]


def test_one_run_has_no_deviation():
    mean, deviation = mean_and_deviation(np.array([0.5]))
    assert mean == 0.5
    assert np.isnan(deviation)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=9))
def test_agrees_with_the_standard_library(accuracies):
    expected = (statistics.fmean(accuracies), statistics.stdev(accuracies))
    assert mean_and_deviation(np.array(accuracies)) == pytest.approx(expected, abs=1e-9)


def test_a_thought_that_never_ends_is_no_ending_and_no_budget_hit():
    answers = pd.DataFrame(
        {
            "hit_budget": [False, False, True, False],
            "reason": ["", "wrong value", "cut by the budget", "the thought never ended"],
        }
    )
    assert budget_hit_rate(answers) == 0.25
    assert termination_rate(answers) == 0.5


def test_rows_are_items_and_columns_runs_whatever_the_order_of_the_answers():
    answers = pd.DataFrame(
        {
            "item_id": ["b", "a", "a", "b"],
            "run": [1, 1, 0, 0],
            "correct": [True, False, True, False],
        }
    )
    assert by_item_and_run(answers, "correct").tolist() == [[1, 0], [0, 1]]


def test_other_items_are_refused_by_name():
    ours, theirs = (pd.DataFrame({"item_id": ids}) for ids in (["1", "2"], ["1", "3", "4"]))
    check_same_items(ours, ours[::-1], "reap-m32 on gsm8k")
    with pytest.raises(ArtifactError, match=r"reap-m32 on gsm8k: 3 items, 2 among them"):
        check_same_items(ours, theirs, "reap-m32 on gsm8k")
