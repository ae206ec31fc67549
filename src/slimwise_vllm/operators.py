"""The plugin's torch operators: opaque to torch.compile, safe inside CUDA graphs.

Legend: T tokens, N logits of all routers, E experts, B blocks of E logits, P pools, K top-k,
H phases and padding, L MoE layers.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from slimwise.core.masking import pruned_logit
from slimwise_vllm import trained_operators

_SCHEMAS: Mapping[str, str] = MappingProxyType(
    {
        "mask_router_logits": "(Tensor logits_TN, Tensor pruned_PE, Tensor pool_T, "
        "Tensor? block_P=None) -> Tensor",
        "count_experts": "(Tensor ids_TK, Tensor phase_T, Tensor(a!) counts_HLE, int layer) -> ()",
    }
)
_kept_alive: list[torch.library.Library] = []


def define_operators() -> None:
    """Define all operators below slimwise::; harmless to call twice."""
    if _kept_alive:
        return
    library = torch.library.Library("slimwise", "FRAGMENT")
    _define(library, _SCHEMAS, globals())
    _define(library, trained_operators.SCHEMAS, vars(trained_operators))
    _kept_alive.append(library)


def _define(
    library: torch.library.Library, schemas: Mapping[str, str], module: Mapping[str, Any]
) -> None:
    for name, schema in schemas.items():
        library.define(name + schema)
        for device, suffix in (("CPU", ""), ("CUDA", "_cuda")):
            function: Callable[..., Any] = module[f"_{name}{suffix}"]
            library.impl(name, function, device)
        torch.library.register_fake(f"slimwise::{name}", module[f"_{name}_fake"], lib=library)


def _mask_router_logits(
    logits_TN: Tensor, pruned_PE: Tensor, pool_T: Tensor, block_P: Tensor | None = None
) -> Tensor:
    """Router logits that select only experts of each row's pool, out of place, [T, E].

    With block_P a row holds the logits of several routers, of which its pool's is one.
    Logits of experts in the pool keep their bits. Replaced, not added to: in float16 a sum could
    reach -inf. SlimWise, What, item 2 (colocated).
    """
    row_pool_T = pool_T[: len(logits_TN)]
    logits_TE = logits_TN
    if block_P is not None:
        blocks_TBE = logits_TN.view(len(logits_TN), -1, pruned_PE.shape[1])
        rows_T = torch.arange(len(logits_TN), device=logits_TN.device)
        logits_TE = blocks_TBE[rows_T, block_P[row_pool_T]]
    return logits_TE.masked_fill(pruned_PE[row_pool_T], pruned_logit(logits_TE.dtype))


def _count_experts(ids_TK: Tensor, phase_T: Tensor, counts_HLE: Tensor, layer: int) -> None:
    """Add one to counts[phase, layer, expert] for every choice; kernels skip rows with id -1."""
    num_experts = counts_HLE.shape[2]
    phase_TK = phase_T[: len(ids_TK), None].expand_as(ids_TK)
    chosen = ids_TK >= 0
    flat = phase_TK[chosen].long() * num_experts + ids_TK[chosen].long()
    counted = torch.bincount(flat, minlength=counts_HLE.shape[0] * num_experts)
    counts_HLE[:, layer] += counted.view(-1, num_experts).to(counts_HLE.dtype)


def _mask_router_logits_cuda(
    logits_TN: Tensor, pruned_PE: Tensor, pool_T: Tensor, block_P: Tensor | None = None
) -> Tensor:
    # Triton is absent on CPU-only hosts.
    from slimwise_vllm.kernels import mask_rows

    return mask_rows(logits_TN, pruned_PE, pool_T, block_P, pruned_logit(logits_TN.dtype))


def _count_experts_cuda(ids_TK: Tensor, phase_T: Tensor, counts_HLE: Tensor, layer: int) -> None:
    from slimwise_vllm.kernels import count_ids

    count_ids(ids_TK, phase_T, counts_HLE, layer)


def _mask_router_logits_fake(
    logits_TN: Tensor, pruned_PE: Tensor, _pool_T: Tensor, _block_P: Tensor | None = None
) -> Tensor:
    return logits_TN.new_empty(logits_TN.shape[0], pruned_PE.shape[1])


def _count_experts_fake(
    _ids_TK: Tensor, _phase_T: Tensor, _counts_HLE: Tensor, _layer: int
) -> None:
    pass
