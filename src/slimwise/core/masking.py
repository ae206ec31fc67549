"""Routing to kept experts only, by the router's logits: what a pruned checkpoint would do.

Legend: T tokens, E experts, K top-k, L MoE layers.
"""

import torch
from torch import Tensor

from slimwise.core.keep_set import KeepSet
from slimwise.core.moe import GateActivation, GateRule


def router_bias(keep_set: KeepSet, dtype: torch.dtype = torch.float32) -> Tensor:
    """What to add to router logits: 0 for kept experts, a large negative value else, [L, E].

    SlimWise, What, item 2 (colocated).
    """
    bias_LE = torch.full(
        (keep_set.num_layers, keep_set.num_experts), pruned_logit(dtype), dtype=dtype
    )
    for bias_E, kept in zip(bias_LE, keep_set.kept, strict=True):
        bias_E[list(kept)] = 0
    return bias_LE


def pruned_logit(dtype: torch.dtype) -> float:
    """The router logit of an expert that must not be chosen."""
    # Finite: a fused top-k may return arbitrary ids for rows that contain -inf.
    return -6e4 if dtype is torch.float16 else -1e30


def masked_router_logits(logits_TE: Tensor, bias_E: Tensor) -> Tensor:
    """Router logits that select kept experts only, [T, E]; those of kept experts are unchanged.

    SlimWise, What, item 2 (colocated).
    """
    return logits_TE + bias_E


def top_k_gates(
    logits_TE: Tensor, top_k: int, rule: GateRule, *, expert_scale_E: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Gates, float32, and ids of the experts that each token is routed to, both [T, K].

    Ordered by router score; of equal scores the lower id comes first. expert_scale_E is needed
    exactly if the rule has a per-expert scale. SlimWise, What, items 1 and 2.
    """
    assert (expert_scale_E is not None) == rule.per_expert_scale
    scores_TE = _activated(logits_TE.float(), rule.activation)
    sorted_TE, order_TE = scores_TE.sort(dim=-1, descending=True, stable=True)
    gates_TK, ids_TK = sorted_TE[:, :top_k], order_TE[:, :top_k]
    if rule.renormalised:
        gates_TK = gates_TK / gates_TK.sum(dim=-1, keepdim=True)
    if expert_scale_E is not None:
        gates_TK = gates_TK * expert_scale_E[ids_TK]
    return gates_TK, ids_TK


def _activated(logits_TE: Tensor, activation: GateActivation) -> Tensor:
    match activation:
        case GateActivation.SOFTMAX:
            return logits_TE.softmax(dim=-1)
        case GateActivation.SIGMOID:
            return logits_TE.sigmoid()
