"""Popular and unpopular experts in a model of random weights.

Random weights route uniformly: a step of 64 sequences reads 87 % of 256 experts with top-8, a real
model about 75 % (SlimWise, Why). A router row scaled by s makes its logit vary s times as much, and
top-k takes the largest, so an expert's popularity grows with its scale. Nothing is added to the
step: the weights change, the kernels do not.

The scales are the quantiles of a log-normal distribution. A pruned pool keeps the experts of the
largest scales: REAP keeps those with the largest gate x norm, and here the gate grows with the
scale. It is also the cautious choice, because among popular experts routing is flatter than among
random ones, so that a pruned step reads more of its pool.

Legend: L MoE layers, E experts, D hidden.
"""

from enum import StrEnum
from statistics import NormalDist
from typing import Any

import torch
from torch import Tensor

from slimwise.core.keep_set import KeepSet
from slimwise.errors import BackboneError


class Routing(StrEnum):
    UNIFORM = "uniform"
    SKEWED = "skewed"


def expert_scales(num_experts: int, num_kept: int, strength: float) -> Tensor:
    """Router scales of the num_kept most popular of num_experts experts, largest first.

    exp(strength z) at the quantiles z of the normal distribution; all 1 for strength 0.
    """
    normal = NormalDist()
    ranks = range(num_experts, num_experts - num_kept, -1)
    quantiles = [normal.inv_cdf((rank - 0.5) / num_experts) for rank in ranks]
    return (strength * torch.tensor(quantiles, dtype=torch.float64)).exp()


def popularity_order(layer: int, num_experts: int, seed: int) -> list[int]:
    """Experts of a layer from the most to the least popular."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + layer)
    return torch.randperm(num_experts, generator=generator).tolist()


def popular_keep_set(shape: tuple[int, int, int], num_kept: int, seed: int) -> KeepSet:
    """The num_kept most popular experts of each layer; the shape is layers, experts, top-k."""
    num_layers, num_experts, top_k = shape
    kept = (popularity_order(layer, num_experts, seed)[:num_kept] for layer in range(num_layers))
    return KeepSet(tuple(tuple(sorted(layer)) for layer in kept), num_experts, top_k)


class RouterSkew:
    """The routers of a loaded model, whose rows can be scaled anew at any time."""

    def __init__(self, model: Any, num_layers: int, num_experts: int, seed: int) -> None:
        self._routers = _router_weights(model, num_experts)
        if len(self._routers) != num_layers:
            raise BackboneError(
                f"found {len(self._routers)} router weights of {num_experts} experts for "
                f"{num_layers} MoE layers. Measure this model with routings: [uniform]."
            )
        self._original = [weight_ED.clone() for weight_ED in self._routers]
        self._order_LE = [popularity_order(layer, num_experts, seed) for layer in range(num_layers)]

    def apply(self, scales_E: Tensor) -> None:
        """Scale every layer's rows, the most popular expert's by the first scale, in place."""
        for weight_ED, original_ED, order in zip(
            self._routers, self._original, self._order_LE, strict=True
        ):
            row_scale_E = torch.empty(len(order), dtype=torch.float64)
            row_scale_E[order] = scales_E
            scaled_ED = original_ED.double() * row_scale_E.to(original_ED.device)[:, None]
            weight_ED.copy_(scaled_ED.to(weight_ED.dtype))


def _router_weights(model: Any, num_experts: int) -> list[Tensor]:
    found: dict[int, Tensor] = {}
    for block in model.modules():
        weight = getattr(getattr(block, "gate", None), "weight", None)
        if isinstance(weight, Tensor) and weight.dim() == 2 and len(weight) == num_experts:
            found.setdefault(weight.data_ptr(), weight.detach())
    return list(found.values())
