"""The one place where router logits are final and experts not yet chosen: before dispatch.

Every MoE model, router and kernel of vLLM passes MoERunner._maybe_dispatch, on GPU inside the
opaque operator vllm::moe_forward, so that compiled and captured graphs stay valid. Hooks are set
on the objects of a loaded model, never on vLLM's classes: without pools nothing is hooked.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from slimwise_vllm.moe_layers import MoELayer


def mask_layer(
    layer: MoELayer,
    pruned_PE: Tensor,
    pool_T: Tensor,
    reached: list[bool],
    block_P: Tensor | None = None,
) -> None:
    """Make a layer choose experts of each token's pool; reached[layer] tells that it ran.

    With block_P the layer's router gives the logits of several, of which that is each pool's.
    """
    dispatch = layer.runner._maybe_dispatch

    @functools.wraps(dispatch)
    def masked_dispatch(hidden_states: Tensor, router_logits: Tensor) -> tuple[Tensor, Tensor]:
        reached[layer.index] = True
        masked = torch.ops.slimwise.mask_router_logits(router_logits, pruned_PE, pool_T, block_P)
        return dispatch(hidden_states, masked)

    layer.runner._maybe_dispatch = masked_dispatch


def observe_choices(layer: MoELayer, observe: Callable[[Tensor], None]) -> None:
    """Call observe with the logical ids that a layer's router chooses, [T, K].

    Not BaseRouter.capture_fn: vLLM sets that itself when asked to return routed experts.
    """

    def observed(gates_TK: Tensor, ids_TK: Tensor) -> Tensor:
        observe(ids_TK)
        return gates_TK

    _after_routing(layer, observed)


def scale_choices(layer: MoELayer, scale_PE: Tensor, pool_T: Tensor) -> None:
    """Multiply the gate of each choice by the factor of its expert in the token's pool."""

    def scaled(gates_TK: Tensor, ids_TK: Tensor) -> Tensor:
        return torch.ops.slimwise.scale_gates_by_pool(gates_TK, ids_TK, scale_PE, pool_T)

    _after_routing(layer, scaled)


def _after_routing(layer: MoELayer, change: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Replace the gates that a layer's router computes, given its gates and expert ids."""
    router = layer.runner.router
    compute_routing = router._compute_routing

    @functools.wraps(compute_routing)
    def changed_routing(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        gates, ids = compute_routing(*args, **kwargs)
        return change(gates, ids), ids

    router._compute_routing = changed_routing
