"""The plugin's two torch operators: opaque to torch.compile, safe inside CUDA graphs.

Legend: T tokens, E experts, P pools, L MoE layers, K top-k, H phases and padding.
"""

import torch
from torch import Tensor

from slimwise.core.masking import pruned_logit

_MASK = "mask_router_logits(Tensor logits_TE, Tensor pruned_PE, Tensor pool_T) -> Tensor"
_COUNT = "count_experts(Tensor ids_TK, Tensor phase_T, Tensor(a!) counts_HLE, int layer) -> ()"
_kept_alive: list[torch.library.Library] = []


def define_operators() -> None:
    """Define slimwise::mask_router_logits and slimwise::count_experts; harmless to call twice."""
    if _kept_alive:
        return
    library = torch.library.Library("slimwise", "FRAGMENT")
    for schema, name in ((_MASK, "mask_router_logits"), (_COUNT, "count_experts")):
        library.define(schema)
        library.impl(name, globals()[f"_{name}"], "CPU")
        library.impl(name, globals()[f"_{name}_cuda"], "CUDA")
    torch.library.register_fake("slimwise::mask_router_logits", _empty_like, lib=library)
    torch.library.register_fake("slimwise::count_experts", _nothing, lib=library)
    _kept_alive.append(library)


def _mask_router_logits(logits_TE: Tensor, pruned_PE: Tensor, pool_T: Tensor) -> Tensor:
    """Router logits that select only experts of each row's pool, out of place, [T, E].

    Logits of experts in the pool keep their bits. Replaced, not added to: in float16 a sum could
    reach -inf. SlimWise, What, item 2 (colocated).
    """
    pruned_TE = pruned_PE[pool_T[: len(logits_TE)]]
    return logits_TE.masked_fill(pruned_TE, pruned_logit(logits_TE.dtype))


def _count_experts(ids_TK: Tensor, phase_T: Tensor, counts_HLE: Tensor, layer: int) -> None:
    """Add one to counts[phase, layer, expert] for every choice; kernels skip rows with id -1."""
    num_experts = counts_HLE.shape[2]
    phase_TK = phase_T[: len(ids_TK), None].expand_as(ids_TK)
    chosen = ids_TK >= 0
    flat = phase_TK[chosen].long() * num_experts + ids_TK[chosen].long()
    counted = torch.bincount(flat, minlength=counts_HLE.shape[0] * num_experts)
    counts_HLE[:, layer] += counted.view(-1, num_experts).to(counts_HLE.dtype)


def _mask_router_logits_cuda(logits_TE: Tensor, pruned_PE: Tensor, pool_T: Tensor) -> Tensor:
    # Triton is absent on CPU-only hosts.
    from slimwise_vllm.kernels import mask_rows

    return mask_rows(logits_TE, pruned_PE, pool_T, pruned_logit(logits_TE.dtype))


def _count_experts_cuda(ids_TK: Tensor, phase_T: Tensor, counts_HLE: Tensor, layer: int) -> None:
    from slimwise_vllm.kernels import count_ids

    count_ids(ids_TK, phase_T, counts_HLE, layer)


def _empty_like(logits_TE: Tensor, _pruned_PE: Tensor, _pool_T: Tensor) -> Tensor:
    return torch.empty_like(logits_TE, memory_format=torch.contiguous_format)


def _nothing(_ids_TK: Tensor, _phase_T: Tensor, _counts_HLE: Tensor, _layer: int) -> None:
    pass
