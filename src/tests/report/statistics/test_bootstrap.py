"""Legend: I items, R runs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from slimwise.report.statistics.bootstrap import (
    Bootstrap,
    Interval,
    difference_interval,
    mean_interval,
    quantile_interval,
)

FEW = Bootstrap(num_resamples=200, confidence=0.9, seed=0)
MANY = Bootstrap(num_resamples=4000, confidence=0.95, seed=0)
VERDICTS = arrays(
    np.float64, st.tuples(st.just(6), st.integers(1, 3)), elements=st.sampled_from([0.0, 1.0])
)


def test_two_items_by_hand():
    ours_IR, theirs_IR = np.array([[1.0], [1.0]]), np.array([[1.0], [0.0]])
    # Two draws of the differences 0 and 1 have the mean 0, 1/2 or 1, with chances 1 : 2 : 1.
    assert difference_interval(ours_IR, theirs_IR, np.ones(2), MANY) == Interval(0.0, 1.0)
    middle = Bootstrap(num_resamples=4000, confidence=0.4, seed=0)
    assert difference_interval(ours_IR, theirs_IR, np.ones(2), middle) == Interval(0.5, 0.5)


def test_the_runs_of_an_item_are_drawn_together():
    # Drawn one by one, half of the resamples would mix 10 and 30 and have a median between them.
    lengths_IR = np.array([[10.0, 10.0, 10.0], [30.0, 30.0, 30.0]])
    assert quantile_interval(lengths_IR, 0.5, MANY) == Interval(10.0, 30.0)
    middle = Bootstrap(num_resamples=4000, confidence=0.4, seed=0)
    assert quantile_interval(lengths_IR, 0.5, middle) == Interval(20.0, 20.0)
    assert quantile_interval(lengths_IR[:, :1], 0.5, middle) == Interval(20.0, 20.0)


def test_pairing_removes_what_items_share():
    rng = np.random.default_rng(0)
    hardness_I1 = rng.random((400, 1))
    theirs_IR = (rng.random((400, 3)) < hardness_I1).astype(float)
    assert difference_interval(theirs_IR - 0.25, theirs_IR, np.ones(400), FEW) == Interval(
        -0.25, -0.25
    )


def test_width_of_many_independent_items_is_the_normal_one():
    rng = np.random.default_rng(1)
    ours_IR = (rng.random((400, 1)) < 0.5).astype(float)
    interval = difference_interval(ours_IR, np.zeros((400, 1)), np.ones(400), MANY)
    expected = 2 * 1.96 * ours_IR.std() / np.sqrt(400)
    # Two ends of 4,000 resamples: each is off by about 2 % of the width.
    assert interval.high - interval.low == pytest.approx(expected, rel=0.1)
    assert interval.low < ours_IR.mean() < interval.high


def test_runs_may_differ_in_number():
    sampled_IR, greedy_IR = np.ones((5, 3)), np.zeros((5, 1))
    assert difference_interval(sampled_IR, greedy_IR, np.ones(5), FEW) == Interval(1.0, 1.0)


def test_items_count_by_their_weights():
    # Resamples of one item alone have its value; of both, (3 x 1 + 1 x 0) / 4.
    middle = Bootstrap(num_resamples=4000, confidence=0.4, seed=0)
    values_IR = np.array([[1.0, 1.0], [0.0, 0.0]])
    assert mean_interval(values_IR, np.array([3.0, 1.0]), middle) == Interval(0.75, 0.75)
    assert mean_interval(values_IR, np.ones(2), middle) == Interval(0.5, 0.5)


def test_a_single_item_has_no_interval():
    interval = quantile_interval(np.array([[1.0, 2.0]]), 0.5, FEW)
    assert np.isnan([interval.low, interval.high]).all()


@settings(max_examples=30, deadline=None)
@given(ours_IR=VERDICTS, theirs_IR=VERDICTS)
def test_the_other_way_round_the_interval_is_mirrored(ours_IR, theirs_IR):
    forth = difference_interval(ours_IR, theirs_IR, np.ones(6), FEW)
    back = difference_interval(theirs_IR, ours_IR, np.ones(6), FEW)
    assert -1 <= forth.low <= forth.high <= 1
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))


@settings(max_examples=30, deadline=None)
@given(
    values_IR=arrays(np.float64, (5, 2), elements=st.integers(1, 100)),
    quantile=st.sampled_from([0.5, 0.9]),
)
def test_quantiles_stay_within_the_values_and_move_with_them(values_IR, quantile):
    interval = quantile_interval(values_IR, quantile, FEW)
    assert values_IR.min() <= interval.low <= interval.high <= values_IR.max()
    moved = quantile_interval(values_IR + 7, quantile, FEW)
    assert (moved.low, moved.high) == pytest.approx((interval.low + 7, interval.high + 7))


def test_the_seed_decides():
    values_IR = np.random.default_rng(2).random((20, 2))
    again = quantile_interval(values_IR, 0.5, FEW)
    other = quantile_interval(values_IR, 0.5, Bootstrap(200, 0.9, seed=1))
    assert quantile_interval(values_IR, 0.5, FEW) == again != other


def test_batches_do_not_change_the_draws(monkeypatch):
    values_IR = np.random.default_rng(3).random((20, 2))
    at_once = quantile_interval(values_IR, 0.9, FEW)
    monkeypatch.setattr("slimwise.report.statistics.bootstrap._BATCH_VALUES", 100)
    assert quantile_interval(values_IR, 0.9, FEW) == at_once
