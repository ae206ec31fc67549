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
from slimwise_vllm.token_pools import TokenPools


def mask_layer(
    layer: MoELayer, pruned_PE: Tensor, token_pools: TokenPools, reached: list[bool]
) -> None:
    """Make a layer choose experts of each token's pool; reached[layer] tells that it ran."""
    dispatch = layer.runner._maybe_dispatch
    pool_T = token_pools.pool_T

    @functools.wraps(dispatch)
    def masked_dispatch(hidden_states: Tensor, router_logits: Tensor) -> tuple[Tensor, Tensor]:
        reached[layer.index] = True
        masked = torch.ops.slimwise.mask_router_logits(router_logits, pruned_PE, pool_T)
        return dispatch(hidden_states, masked)

    layer.runner._maybe_dispatch = masked_dispatch


def observe_choices(layer: MoELayer, observe: Callable[[Tensor], None]) -> None:
    """Call observe with the logical ids that a layer's router chooses, [T, K].

    Not BaseRouter.capture_fn: vLLM sets that itself when asked to return routed experts.
    """
    router = layer.runner.router
    compute_routing = router._compute_routing

    @functools.wraps(compute_routing)
    def observed_routing(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        gates, ids = compute_routing(*args, **kwargs)
        observe(ids)
        return gates, ids

    router._compute_routing = observed_routing
