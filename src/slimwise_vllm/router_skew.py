"""The routers of a model of random weights, scaled so that some experts are popular.

Legend: L MoE layers, E experts, D hidden width.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from slimwise.core.skew import popularity_order
from slimwise.errors import BackboneError


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
