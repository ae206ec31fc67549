"""The plain way to observe experts, as a yardstick: one after another, on the tokens they get.

Legend: T tokens, K top-k, E experts, D hidden, N tokens of one expert, L MoE layers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from slimwise.backbones.base import Backbone

_NAME = "slimwise_expert_loop"


def expert_output(experts: Any, expert: int, hidden_ND: Tensor) -> Tensor:
    """f_j(x) of one expert of a fused module, unweighted, [N, D]."""
    gate, up = nn.functional.linear(hidden_ND, experts.gate_up_proj[expert]).chunk(2, dim=-1)
    return nn.functional.linear(experts.act_fn(gate) * up, experts.down_proj[expert])


@contextmanager
def looped(model: Any, backbone: Backbone) -> Iterator["ExpertLoop"]:
    """The model with experts that run one after another, and what they added up so far."""
    unobserved = model.config._experts_implementation
    loop = ExpertLoop([layer.experts for layer in backbone.moe_modules(model)])
    ALL_EXPERTS_FUNCTIONS[_NAME] = loop.forward
    model.set_experts_implementation(_NAME)
    try:
        yield loop
    finally:
        model.set_experts_implementation(unobserved)
        del ALL_EXPERTS_FUNCTIONS[_NAME]


class ExpertLoop:
    """Counts, norms and gated norms by layer and expert, float64 [L, E], on the device."""

    def __init__(self, experts: list[nn.Module]) -> None:
        self._layer_of = {module: number for number, module in enumerate(experts)}
        first: Any = experts[0]
        shape = len(experts), first.gate_up_proj.shape[0]
        device = first.gate_up_proj.device
        self.tokens = torch.zeros(shape, dtype=torch.float64, device=device)
        self.norm = torch.zeros_like(self.tokens)
        self.gate_norm = torch.zeros_like(self.tokens)

    def forward(
        self, experts: nn.Module, hidden_TD: Tensor, ids_TK: Tensor, gates_TK: Tensor
    ) -> Tensor:
        """What the experts compute, [T, D]."""
        layer = self._layer_of[experts]
        total_TD = torch.zeros_like(hidden_TD)
        for expert in range(self.tokens.shape[1]):
            token_N, slot_N = torch.where(ids_TK == expert)
            raw_ND = expert_output(experts, expert, hidden_TD[token_N])
            gate_N = gates_TK[token_N, slot_N]
            norm_N = torch.linalg.vector_norm(raw_ND, dim=-1, dtype=torch.float32).double()
            self.tokens[layer, expert] += len(token_N)
            self.norm[layer, expert] += norm_N.sum()
            self.gate_norm[layer, expert] += (gate_N.double() * norm_N).sum()
            total_TD.index_add_(0, token_N, (raw_ND * gate_N[:, None]).to(total_TD.dtype))
        return total_TD
