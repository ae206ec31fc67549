"""Legend: E experts, D hidden width."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from slimwise.core.skew import SKEWED_WEIGHTS, expert_scales, popularity_order
from slimwise.errors import ConfigError

SKEW = {"strength": 0.5, "num_experts": 16, "seed": 3}
SHAPE: Any = SimpleNamespace(get_num_experts=lambda: 8, get_total_num_hidden_layers=lambda: 2)


def drawn(load_format: str, extra: dict[str, Any]) -> list[torch.Tensor]:
    """The routers' weights as vLLM draws them for a model of 2 layers and 8 experts."""
    from vllm.config.load import LoadConfig
    from vllm.model_executor.model_loader import get_model_loader, register_model_loader

    from slimwise_vllm.skewed_weights import SkewedWeights

    register_model_loader(SKEWED_WEIGHTS)(SkewedWeights)
    model: Any = nn.ModuleList(nn.ModuleDict({"gate": nn.Linear(6, 8)}) for _ in range(2))
    for block in model:
        block.gate = block["gate"]
        block.gate.output_size = 8
    config = LoadConfig(load_format=load_format, model_loader_extra_config=extra)
    get_model_loader(config).load_weights(model, SHAPE)
    return [block.gate.weight.detach() for block in model]


def test_routers_are_those_of_random_weights_with_the_popular_half_of_the_scales():
    skewed = drawn(SKEWED_WEIGHTS, SKEW)
    for layer, (skewed_ED, plain_ED) in enumerate(zip(skewed, drawn("dummy", {}), strict=True)):
        ratio_E = (skewed_ED / plain_ED).mean(1).double()
        expected = expert_scales(16, 8, 0.5)
        assert torch.allclose(ratio_E[popularity_order(layer, 8, 3)], expected, rtol=1e-5)


@pytest.mark.parametrize("extra", [{}, {"strength": 0.5}, {**SKEW, "share": 0.75}])
def test_a_skew_with_other_keys_is_refused(extra):
    with pytest.raises(ConfigError, match="Give strength, num_experts and seed"):
        drawn(SKEWED_WEIGHTS, extra)
