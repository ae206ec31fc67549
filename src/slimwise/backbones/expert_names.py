"""How a family names the tensors of its routers and experts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slimwise.backbones.base import Copied, ExpertLayout, ExpertStack, SingleExpert, TensorRole
from slimwise.core.moe import MoEShape

if TYPE_CHECKING:
    from torch import nn

_IN_DECODER_LAYER = re.compile(
    r"(?P<prefix>(?:(?:model|language_model)\.)*layers\.(?P<layer>\d+)\.)(?P<rest>.+)"
)
_OF_ONE_EXPERT = re.compile(r"experts\.(?P<expert>\d+)\.(?P<part>.+)")


@dataclass(frozen=True)
class ExpertNames:
    """Names within a decoder layer; experts lie fused in two tensors, or one by one.

    blocks are the prefixes before the experts, any of which a checkpoint may use. router is the
    module whose weight has one row per expert, and scales are further tensors with one value per
    expert. gate, up and down are the projections of a single expert.
    """

    blocks: tuple[str, ...] = ("mlp.",)
    router: str = "gate"
    scales: tuple[str, ...] = ()
    gate: str = "gate_proj"
    up: str = "up_proj"
    down: str = "down_proj"

    def tensor_role(self, name: str) -> TensorRole:
        """Expert tensors by name, whatever quantisation scales and router biases lie beside."""
        in_layer = _IN_DECODER_LAYER.fullmatch(name)
        if in_layer is None:
            return Copied()
        layer, rest = int(in_layer["layer"]), in_layer["rest"]
        for block in filter(rest.startswith, self.blocks):
            part = rest.removeprefix(block)
            single = _OF_ONE_EXPERT.fullmatch(part)
            if single is not None:
                expert, own_part = int(single["expert"]), single["part"]
                prefix = f"{in_layer['prefix']}{block}experts."
                return SingleExpert(layer, own_part, expert, prefix, f".{own_part}")
            if part.startswith(("experts.", f"{self.router}.")) or part in self.scales:
                return ExpertStack(layer, part)
        return Copied()

    def layouts(self, shape: MoEShape) -> tuple[ExpertLayout, ...]:
        """Experts fused into two tensors a layer, or three tensors an expert."""
        hidden, width, experts = shape.hidden_size, shape.expert_width, shape.num_experts
        routing = {f"{self.router}.weight": (experts, hidden)}
        routing |= {name: (experts,) for name in self.scales}
        fused = {
            "experts.gate_up_proj": (experts, 2 * width, hidden),
            "experts.down_proj": (experts, hidden, width),
        }
        split = {
            f"{self.gate}.weight": (width, hidden),
            f"{self.up}.weight": (width, hidden),
            f"{self.down}.weight": (hidden, width),
        }
        return (ExpertLayout({**routing, **fused}), ExpertLayout(routing, split))


def decoder_layers(model: nn.Module) -> Iterator[Any]:
    """The layers of a loaded text model, or of the text model in a wrapper, in order."""
    decoder: Any = getattr(model, "language_model", model)
    yield from decoder.layers
