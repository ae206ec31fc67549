import pytest

from slimwise.core.selection import select_keep_set, top_experts
from slimwise.errors import ConfigError


def test_best_experts_ascend():
    assert top_experts([0.1, 5.0, 0.0, 2.0], 2) == (1, 3)


def test_ties_keep_the_lower_id_and_unrouted_experts_go_first():
    assert top_experts([1.0, 2.0, 1.0, 1.0], 2) == (0, 1)
    assert top_experts([0.0, 3.0, 0.0, 1e-9], 2) == (1, 3)
    assert top_experts([0.0, 0.0, 0.0, 0.0], 3) == (0, 1, 2)


def test_layers_are_ranked_on_their_own():
    keep_set = select_keep_set(
        [[3.0, 2.0, 1.0], [100.0, 200.0, 300.0]], 2, top_k=1, backbone="tiny"
    )
    assert keep_set.kept == ((0, 1), (1, 2))


def test_keeping_everything_is_allowed():
    assert select_keep_set([[0.0, 0.0]], 2, top_k=2, backbone="tiny").kept == ((0, 1),)


@pytest.mark.parametrize(("num_kept", "limit"), [(7, "top_k=8"), (17, "num_experts=16"), (0, "8")])
def test_impossible_counts_name_value_limit_and_remedy(num_kept, limit):
    with pytest.raises(ConfigError, match=rf"num_kept={num_kept} .*{limit}.*8\.\.16"):
        select_keep_set([[1.0] * 16], num_kept, top_k=8, backbone="tiny")
