"""Triton kernels behind the operators on CUDA: one launch each, no host synchronisation.

Legend: T tokens, E experts, P pools, L MoE layers, K top-k, H phases and padding.
"""

import torch
from torch import Tensor
from vllm.triton_utils import tl, triton

_MAX_BLOCK = 1024


@triton.jit
def _mask_rows_kernel(
    logits, pruned, pool, masked, num_experts, row_stride, pruned_logit, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    expert = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_expert = expert < num_experts
    row_pool = tl.load(pool + row)
    is_pruned = tl.load(pruned + row_pool * num_experts + expert, mask=is_expert, other=0)
    logit = tl.load(logits + row * row_stride + expert, mask=is_expert, other=0.0)
    kept = tl.where(is_pruned != 0, pruned_logit, logit)
    tl.store(masked + row * num_experts + expert, kept, mask=is_expert)


# Else Triton would compile twice, the second time in the middle of serving.
@triton.jit(do_not_specialize=["num_ids"])
def _count_ids_kernel(ids, phase, counts, phase_stride, top_k, num_ids, BLOCK: tl.constexpr):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_id = place < num_ids
    expert = tl.load(ids + place, mask=is_id, other=-1).to(tl.int64)
    row_phase = tl.load(phase + place // top_k, mask=is_id, other=0).to(tl.int64)
    cell = counts + row_phase * phase_stride + expert
    tl.atomic_add(cell, 1, mask=is_id & (expert >= 0))


def mask_rows(logits_TE: Tensor, pruned_PE: Tensor, pool_T: Tensor, pruned_logit: float) -> Tensor:
    """A contiguous copy of the logits with pruned_logit where the row's pool lacks the expert."""
    num_rows, num_experts = logits_TE.shape
    masked_TE = torch.empty_like(logits_TE, memory_format=torch.contiguous_format)
    if num_rows == 0:
        return masked_TE
    assert logits_TE.stride(1) == 1
    assert pruned_PE.shape[1] == num_experts
    block = min(triton.next_power_of_2(num_experts), _MAX_BLOCK)
    grid = num_rows, triton.cdiv(num_experts, block)
    _mask_rows_kernel[grid](  # pyright: ignore[reportIndexIssue]
        logits_TE,
        pruned_PE.view(torch.uint8),
        pool_T,
        masked_TE,
        num_experts,
        logits_TE.stride(0),
        pruned_logit,
        BLOCK=block,
        num_warps=1,
    )
    return masked_TE


def count_ids(ids_TK: Tensor, phase_T: Tensor, counts_HLE: Tensor, layer: int) -> None:
    """Add the choices of one layer to counts[phase, layer, expert], int32."""
    if ids_TK.numel() == 0:
        return
    grid = (triton.cdiv(ids_TK.numel(), _MAX_BLOCK),)
    _count_ids_kernel[grid](  # pyright: ignore[reportIndexIssue]
        ids_TK.contiguous(),
        phase_T,
        counts_HLE[:, layer],
        counts_HLE.stride(0),
        ids_TK.shape[1],
        ids_TK.numel(),
        BLOCK=_MAX_BLOCK,
    )
