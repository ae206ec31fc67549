"""Triton kernels behind the operators of trained pools on CUDA: one launch each.

Legend: T tokens, P pools, D hidden (or head) width, H heads, C columns, B blocks of columns,
E experts, K top-k.
"""

import torch
from torch import Tensor
from vllm.triton_utils import tl, triton

_MAX_BLOCK = 1024
_WARPS = ((512, 1), (2048, 4))
"""Widest row of a program with so many warps; wider rows take eight."""


@triton.jit
def _norm_rows_kernel(
    hidden,
    residual,
    gate,
    weight,
    pool,
    normed,
    summed,
    num_columns,
    num_heads,
    hidden_token_stride,
    hidden_head_stride,
    other_token_stride,
    other_head_stride,
    eps,
    SIGMOID: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    token, head = row // num_heads, row % num_heads
    column = tl.arange(0, BLOCK)
    inside = column < num_columns
    begin = hidden + token * hidden_token_stride + head * hidden_head_stride
    value = tl.load(begin + column, mask=inside, other=0.0).to(tl.float32)
    other = token * other_token_stride + head * other_head_stride + column
    if residual is not None:
        value += tl.load(residual + other, mask=inside, other=0.0).to(tl.float32)
        tl.store(summed + row * num_columns + column, value, mask=inside)
    inverse = tl.rsqrt(tl.sum(value * value, axis=0) / num_columns + eps)
    scale = tl.load(weight + tl.load(pool + token) * num_columns + column, mask=inside, other=0.0)
    if gate is not None:
        opening = tl.load(gate + other, mask=inside, other=0.0).to(tl.float32)
        activated = tl.sigmoid(opening) if SIGMOID else opening * tl.sigmoid(opening)
        result = value * inverse * scale.to(tl.float32) * activated
    else:
        result = (value * inverse).to(scale.dtype).to(tl.float32) * scale.to(tl.float32)
    tl.store(normed + row * num_columns + column, result, mask=inside)


@triton.jit
def _scale_rows_kernel(values, scale, pool, scaled, num_columns, row_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < num_columns
    value = tl.load(values + row * row_stride + column, mask=inside, other=0.0)
    factor = tl.load(scale + tl.load(pool + row) * num_columns + column, mask=inside, other=0.0)
    product = value.to(tl.float32) * factor.to(value.dtype).to(tl.float32)
    tl.store(scaled + row * num_columns + column, product, mask=inside)


@triton.jit
def _keep_blocks_kernel(
    values,
    is_kept,
    pool,
    result,
    num_columns,
    num_blocks,
    block_width,
    row_stride,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < num_columns
    cell = tl.load(pool + row) * num_blocks + column // block_width
    keep = inside & (tl.load(is_kept + cell, mask=inside, other=0) != 0)
    value = tl.load(values + row * row_stride + column, mask=keep, other=0.0)
    tl.store(result + row * num_columns + column, value, mask=inside)


@triton.jit
def _scale_choices_kernel(
    gates, ids, scale, pool, scaled, top_k, num_experts, num_ids, BLOCK: tl.constexpr
):
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < num_ids
    expert = tl.load(ids + place, mask=inside, other=0).to(tl.int64)
    row_pool = tl.load(pool + place // top_k, mask=inside, other=0)
    chosen = inside & (expert >= 0)
    factor = tl.load(scale + row_pool * num_experts + expert, mask=chosen, other=1.0)
    gate = tl.load(gates + place, mask=inside, other=0.0)
    product = gate.to(tl.float32) * factor.to(gate.dtype).to(tl.float32)
    tl.store(scaled + place, product, mask=inside)


def norm_rows(
    hidden_THD: Tensor,
    weight_PD: Tensor,
    pool_T: Tensor,
    eps: float,
    *,
    residual_THD: Tensor | None = None,
    sum_out: Tensor | None = None,
    gate_THD: Tensor | None = None,
    sigmoid: bool = False,
) -> Tensor:
    """The norm of every head by its token's weights; of the sum with a residual, or gated.

    sum_out, contiguous, receives the sum.
    """
    num_tokens, num_heads, num_columns = hidden_THD.shape
    normed_THD = torch.empty_like(hidden_THD, memory_format=torch.contiguous_format)
    if hidden_THD.numel() == 0:
        return normed_THD
    other_THD = next(each for each in (residual_THD, gate_THD, hidden_THD) if each is not None)
    assert hidden_THD.stride(2) == other_THD.stride(2) == 1
    block = triton.next_power_of_2(num_columns)
    _norm_rows_kernel[(num_tokens * num_heads,)](  # pyright: ignore[reportIndexIssue]
        hidden_THD,
        residual_THD,
        gate_THD,
        weight_PD,
        pool_T,
        normed_THD,
        sum_out,
        num_columns,
        num_heads,
        *hidden_THD.stride()[:2],
        *other_THD.stride()[:2],
        eps,
        SIGMOID=sigmoid,
        BLOCK=block,
        num_warps=next((warps for widest, warps in _WARPS if block <= widest), 8),
    )
    return normed_THD


def scale_rows(values_TD: Tensor, scale_PD: Tensor, pool_T: Tensor) -> Tensor:
    """The values times the factors of each row's pool, contiguous."""
    scaled_TD = torch.empty_like(values_TD, memory_format=torch.contiguous_format)
    if values_TD.numel() == 0:
        return scaled_TD
    assert values_TD.stride(1) == 1
    num_rows, num_columns = values_TD.shape
    grid = num_rows, triton.cdiv(num_columns, _MAX_BLOCK)
    _scale_rows_kernel[grid](  # pyright: ignore[reportIndexIssue]
        values_TD, scale_PD, pool_T, scaled_TD, num_columns, values_TD.stride(0), BLOCK=_MAX_BLOCK
    )
    return scaled_TD


def keep_blocks(values_TC: Tensor, kept_PB: Tensor, pool_T: Tensor) -> Tensor:
    """A contiguous copy of the values, zero in blocks of columns that the row's pool lacks."""
    result_TC = torch.empty_like(values_TC, memory_format=torch.contiguous_format)
    if values_TC.numel() == 0:
        return result_TC
    assert values_TC.stride(1) == 1
    (num_rows, num_columns), num_blocks = values_TC.shape, kept_PB.shape[1]
    grid = num_rows, triton.cdiv(num_columns, _MAX_BLOCK)
    _keep_blocks_kernel[grid](  # pyright: ignore[reportIndexIssue]
        values_TC,
        kept_PB.view(torch.uint8),
        pool_T,
        result_TC,
        num_columns,
        num_blocks,
        num_columns // num_blocks,
        values_TC.stride(0),
        BLOCK=_MAX_BLOCK,
    )
    return result_TC


def scale_choices(gates_TK: Tensor, ids_TK: Tensor, scale_PE: Tensor, pool_T: Tensor) -> Tensor:
    """Gates times the factor of their expert in the row's pool, contiguous."""
    scaled_TK = torch.empty_like(gates_TK, memory_format=torch.contiguous_format)
    if gates_TK.numel() == 0:
        return scaled_TK
    grid = (triton.cdiv(gates_TK.numel(), _MAX_BLOCK),)
    _scale_choices_kernel[grid](  # pyright: ignore[reportIndexIssue]
        gates_TK.contiguous(),
        ids_TK.contiguous(),
        scale_PE,
        pool_T,
        scaled_TK,
        gates_TK.shape[1],
        scale_PE.shape[1],
        gates_TK.numel(),
        BLOCK=_MAX_BLOCK,
    )
    return scaled_TK
