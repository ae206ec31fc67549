"""Triton kernels behind the operators on CUDA: one launch each, no host synchronisation.

Legend: T tokens, N logits of all routers, E experts, P pools, K top-k, H phases and padding,
L MoE layers.
"""

import torch
from torch import Tensor
from vllm.triton_utils import tl, triton

_MAX_BLOCK = 1024


@triton.jit
def _mask_rows_kernel(
    logits,
    pruned,
    pool,
    block,
    masked,
    num_experts,
    row_stride,
    pruned_logit,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    expert = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_expert = expert < num_experts
    row_pool = tl.load(pool + row)
    is_pruned = tl.load(pruned + row_pool * num_experts + expert, mask=is_expert, other=0)
    first = row * row_stride
    if block is not None:
        first += tl.load(block + row_pool) * num_experts
    logit = tl.load(logits + first + expert, mask=is_expert, other=0.0)
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


def mask_rows(
    logits_TN: Tensor,
    pruned_PE: Tensor,
    pool_T: Tensor,
    block_P: Tensor | None,
    pruned_logit: float,
) -> Tensor:
    """A contiguous copy of the logits with pruned_logit where the row's pool lacks the expert.

    With block_P, of the block of logits that is the pool's.
    """
    num_rows, num_experts = logits_TN.shape[0], pruned_PE.shape[1]
    masked_TE = logits_TN.new_empty(num_rows, num_experts)
    if num_rows == 0:
        return masked_TE
    assert logits_TN.stride(1) == 1
    assert block_P is not None or logits_TN.shape[1] == num_experts
    block = min(triton.next_power_of_2(num_experts), _MAX_BLOCK)
    grid = num_rows, triton.cdiv(num_experts, block)
    _mask_rows_kernel[grid](  # pyright: ignore[reportIndexIssue]
        logits_TN,
        pruned_PE.view(torch.uint8),
        pool_T,
        block_P,
        masked_TE,
        num_experts,
        logits_TN.stride(0),
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
