"""Additive sums over calibration tokens, from which every pruning criterion is a view.

Legend: L MoE layers, E experts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from slimwise.errors import ArtifactError


@dataclass(frozen=True)
class RoutingStats:
    """Sums over the valid tokens routed to each expert, each [L, E] float64.

    gate is the weight the model multiplies with; softmax_gate is the router probability before
    top-k renormalisation, the other convention in use. norm is ||expert output||_2, unweighted.
    """

    tokens_LE: Tensor
    gate_LE: Tensor
    norm_LE: Tensor
    gate_norm_LE: Tensor
    softmax_gate_LE: Tensor
    softmax_gate_norm_LE: Tensor

    def __post_init__(self) -> None:
        shapes = {tuple(getattr(self, field.name).shape) for field in fields(self)}
        if len(shapes) != 1 or len(next(iter(shapes))) != 2:
            raise ArtifactError(
                f"routing statistics need one [L, E] shape, got {sorted(shapes)}. Run the "
                "collect_stats rule again."
            )
        for field in fields(self):
            if getattr(self, field.name).dtype != torch.float64:
                raise ArtifactError(
                    f"routing statistics {field.name} are {getattr(self, field.name).dtype}; "
                    "expected float64. Run the collect_stats rule again."
                )

    @classmethod
    def zeros(cls, num_layers: int, num_experts: int) -> "RoutingStats":
        """Statistics of no tokens."""
        names = [field.name for field in fields(cls)]
        return cls(*(torch.zeros(num_layers, num_experts, dtype=torch.float64) for _ in names))

    def __add__(self, other: "RoutingStats") -> "RoutingStats":
        """Statistics of both token sets together; exact for token counts."""
        if self.tokens_LE.shape != other.tokens_LE.shape:
            raise ArtifactError(
                f"cannot merge routing statistics of shape {tuple(self.tokens_LE.shape)} with "
                f"{tuple(other.tokens_LE.shape)}: they come from different models. "
                "Observe all components with one model."
            )
        names = [field.name for field in fields(self)]
        return RoutingStats(*(getattr(self, name) + getattr(other, name) for name in names))

    def scaled(self, weight: float) -> "RoutingStats":
        """Statistics of the same tokens, each counted weight times."""
        names = [field.name for field in fields(self)]
        return RoutingStats(*(getattr(self, name) * weight for name in names))

    @property
    def num_layers(self) -> int:
        """MoE layers (L)."""
        return self.tokens_LE.shape[0]

    @property
    def num_experts(self) -> int:
        """Experts of a layer (m)."""
        return self.tokens_LE.shape[1]


def mixed(components: Mapping[str, RoutingStats], weights: Mapping[str, float]) -> RoutingStats:
    """Statistics of the mixture, each component's tokens counted as often as its weight says.

    A component without a weight counts once. SlimWise, What, item 1 (the mixture).
    """
    total, *others = (stats.scaled(weights.get(name, 1.0)) for name, stats in components.items())
    return sum(others, start=total)
