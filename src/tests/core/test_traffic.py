import pytest

from slimwise.core.traffic import expected_distinct_experts


def test_hand_computed():
    # Two of four experts a token: the second token hits each of the others with chance 1/2.
    assert expected_distinct_experts(4, 2, 1) == 2
    assert expected_distinct_experts(4, 2, 2) == 3


def test_share_that_the_paper_states():
    # SlimWise, Why: m = 256, k = 8, B = 64 reads 87 % of the pool.
    assert expected_distinct_experts(256, 8, 64) / 256 == pytest.approx(0.87, abs=0.005)
