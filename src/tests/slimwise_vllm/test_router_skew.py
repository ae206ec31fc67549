"""Legend: T tokens, E experts, D hidden width."""

from typing import Any

import pytest
import torch
from torch import nn

from slimwise.core.skew import expert_scales, popular_keep_set, popularity_order
from slimwise.errors import BackboneError
from slimwise_vllm.router_skew import RouterSkew


class Block(nn.Module):
    def __init__(self, num_experts):
        super().__init__()
        self.gate: Any = nn.Linear(6, num_experts, bias=False)
        self.gate.output_size = num_experts


def model(num_layers=2, num_experts=8) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(*(Block(num_experts) for _ in range(num_layers)))


def test_the_keep_set_is_of_the_experts_that_the_skew_prefers():
    skewed = model()
    before = [block.gate.weight.detach().clone() for block in skewed]
    RouterSkew(skewed, 2, 8, seed=3).apply(expert_scales(8, 8, 0.5))
    keep_set = popular_keep_set((2, 8, 2), 3, seed=3)
    for layer, (block, original_ED) in enumerate(zip(skewed, before, strict=True)):
        ratio_E = (block.gate.weight / original_ED).mean(1)
        assert sorted(ratio_E.topk(3).indices.tolist()) == list(keep_set.kept[layer])
        assert ratio_E.argmax() == popularity_order(layer, 8, 3)[0]


def test_scaling_starts_from_the_original_rows_each_time():
    skewed = model(1)
    before = skewed[0].gate.weight.detach().clone()
    skew = RouterSkew(skewed, 1, 8, seed=0)
    for strength in (1.0, 2.0, 0.0):
        skew.apply(expert_scales(8, 8, strength))
    assert torch.equal(skewed[0].gate.weight, before)


def test_packed_routers_scale_their_products():
    skewed = model(1)
    gate = skewed[0].gate
    packed_ED = gate.weight.detach().clone()
    gate.weight.data = torch.empty(0)
    gate.cpu_linear = lambda hidden_TD, *_: hidden_TD @ packed_ED.T
    RouterSkew(skewed, 1, 8, seed=0).apply(expert_scales(8, 8, 1.0))
    hidden_TD = torch.ones(3, 6)
    ratio_E = (gate.cpu_linear(hidden_TD, None, None) / (hidden_TD @ packed_ED.T))[0]
    expected = expert_scales(8, 8, 1.0).bfloat16().float()
    assert torch.allclose(ratio_E[popularity_order(0, 8, 0)], expected)


def test_a_model_without_such_routers_is_refused():
    with pytest.raises(BackboneError, match="found 2 routers of 8 experts for 3 MoE layers"):
        RouterSkew(model(), 3, 8, seed=0)
