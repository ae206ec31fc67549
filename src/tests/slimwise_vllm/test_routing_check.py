"""Legend: T tokens, K top-k, P pools, E experts."""

import pytest
import torch

from slimwise_vllm.routing_check import RoutingCheck, RoutingViolationError

PRUNED_PE = torch.tensor([[False] * 4, [False, True, True, False]])
POOL_T = torch.tensor([0, 1, 1, 1], dtype=torch.int32)


def check(ids_TK):
    found = RoutingCheck(3, torch.device("cpu"))
    found.observe(torch.tensor(ids_TK, dtype=torch.int32), PRUNED_PE, POOL_T, 1)
    return found


def test_choices_inside_the_pools_pass():
    check([[1, 2], [0, 3], [-1, -1]]).raise_if_violated()


def test_one_choice_outside_names_its_layer():
    with pytest.raises(RoutingViolationError, match="1 choices in MoE layer 1 reached"):
        check([[1, 2], [0, 1]]).raise_if_violated()
