"""Popular and unpopular experts in a model of random weights.

Random weights route uniformly: a step of 64 sequences reads 87 % of 256 experts with top-8, a real
model about 75 % (SlimWise, Why). A router row scaled by s makes its logit vary s times as much, and
top-k takes the largest, so an expert's popularity grows with its scale. Nothing is added to the
step: the weights change, the kernels do not.

The scales are the quantiles of a log-normal distribution. A pruned pool keeps the experts of the
largest scales: REAP keeps those with the largest gate x norm, and here the gate grows with the
scale. It is also the cautious choice, because among popular experts routing is flatter than among
random ones, so that a pruned step reads more of its pool.

Legend: L MoE layers, E experts, D hidden width.
"""

from collections.abc import Callable
from enum import StrEnum
from statistics import NormalDist
from typing import Any

import torch
from torch import Tensor

from slimwise.core.keep_set import KeepSet
from slimwise.errors import BackboneError


class Routing(StrEnum):
    """How the random router spreads tokens over a layer's experts."""

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
        routers = _routers(model, num_experts)
        if len(routers) != num_layers:
            raise BackboneError(
                f"found {len(routers)} routers of {num_experts} experts for {num_layers} MoE "
                "layers. Measure this model with routings: [uniform]."
            )
        self._scale_rows = [_row_scaling(router) for router in routers]
        self._order_LE = [popularity_order(layer, num_experts, seed) for layer in range(num_layers)]

    def apply(self, scales_E: Tensor) -> None:
        """Scale every layer's rows, the most popular expert's by the first scale, in place."""
        for scale_rows, order in zip(self._scale_rows, self._order_LE, strict=True):
            row_scale_E = torch.empty(len(order), dtype=torch.float64)
            row_scale_E[order] = scales_E
            scale_rows(row_scale_E)


def _routers(model: Any, num_experts: int) -> list[Any]:
    gates = (getattr(block, "gate", None) for block in model.modules())
    routers = (gate for gate in gates if getattr(gate, "output_size", None) == num_experts)
    return list({id(router): router for router in routers}.values())


def _row_scaling(router: Any) -> Callable[[Tensor], None]:
    """Scales the router's rows, each time from what they were."""
    if not router.weight.numel():
        return _product_scaling(router)
    original_ED = router.weight.detach().clone()

    def scale_rows(row_scale_E: Tensor) -> None:
        scaled_ED = original_ED.double() * row_scale_E.to(original_ED.device)[:, None]
        router.weight.data.copy_(scaled_ED.to(original_ED.dtype))

    return scale_rows


def _product_scaling(router: Any) -> Callable[[Tensor], None]:
    """The same for vLLM's CPU build, which keeps packed weights out of reach."""
    product = router.cpu_linear
    scale: list[Any] = [1.0]

    def scaled_product(*arguments: Any) -> Tensor:
        return product(*arguments) * scale[0]

    def scale_rows(row_scale_E: Tensor) -> None:
        scale[0] = row_scale_E.to(torch.bfloat16)

    router.cpu_linear = scaled_product
    return scale_rows
