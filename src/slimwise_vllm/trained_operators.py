"""Operators by which each token reads the trained values of its own pool.

Tables have a row for every pool; a pool for which nothing was trained repeats the model's own.
Legend: T tokens, P pools, D hidden (or head) width, H heads, C columns, B blocks of columns,
E experts, K top-k.
"""

from collections.abc import Mapping
from types import MappingProxyType

import torch
from torch import Tensor
from torch.nn import functional

SCHEMAS: Mapping[str, str] = MappingProxyType(
    {
        "rms_norm_by_pool": "(Tensor hidden_THD, Tensor weight_PD, Tensor pool_T, float eps) "
        "-> Tensor",
        "add_rms_norm_by_pool": "(Tensor hidden_TD, Tensor residual_TD, Tensor weight_PD, "
        "Tensor pool_T, float eps) -> (Tensor, Tensor)",
        "gated_rms_norm_by_pool": "(Tensor hidden_THD, Tensor gate_THD, Tensor weight_PD, "
        "Tensor pool_T, float eps, bool sigmoid) -> Tensor",
        "scale_by_pool": "(Tensor values_TD, Tensor scale_PD, Tensor pool_T) -> Tensor",
        "keep_blocks_of_pool": "(Tensor values_TC, Tensor kept_PB, Tensor pool_T) -> Tensor",
        "scale_gates_by_pool": "(Tensor gates_TK, Tensor ids_TK, Tensor scale_PE, Tensor pool_T) "
        "-> Tensor",
    }
)


def _rms_norm_by_pool(hidden_THD: Tensor, weight_PD: Tensor, pool_T: Tensor, eps: float) -> Tensor:
    """Root-mean-square norm of the last dimension by the weights of each token's pool.

    Rounded as vLLM's norms are: to the type of the weights before these multiply.
    """
    normed_THD = _normalised(hidden_THD.float(), eps).to(weight_PD.dtype)
    return (normed_THD * weight_PD[pool_T[: len(hidden_THD)], None]).to(hidden_THD.dtype)


def _add_rms_norm_by_pool(
    hidden_TD: Tensor, residual_TD: Tensor, weight_PD: Tensor, pool_T: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    """The norm of the sum, and the sum, out of place."""
    sum_TD = hidden_TD.float() + residual_TD.float()
    normed_TD = _normalised(sum_TD, eps).to(weight_PD.dtype) * weight_PD[pool_T[: len(sum_TD)]]
    return normed_TD.to(hidden_TD.dtype), sum_TD.to(hidden_TD.dtype)


def _gated_rms_norm_by_pool(
    hidden_THD: Tensor,
    gate_THD: Tensor,
    weight_PD: Tensor,
    pool_T: Tensor,
    eps: float,
    sigmoid: bool,
) -> Tensor:
    """The norm times SiLU (or sigmoid) of the gate, all in float32."""
    weight_T1D = weight_PD[pool_T[: len(hidden_THD)], None].float()
    activation = functional.sigmoid if sigmoid else functional.silu
    normed_THD = _normalised(hidden_THD.float(), eps) * weight_T1D
    return (normed_THD * activation(gate_THD.float())).to(hidden_THD.dtype)


def _scale_by_pool(values_TD: Tensor, scale_PD: Tensor, pool_T: Tensor) -> Tensor:
    """The values times the factors of each token's pool."""
    return values_TD * scale_PD[pool_T[: len(values_TD)]].to(values_TD.dtype)


def _keep_blocks_of_pool(values_TC: Tensor, kept_PB: Tensor, pool_T: Tensor) -> Tensor:
    """Zero where a token's pool lacks the block that a column is in."""
    kept_TB1 = kept_PB[pool_T[: len(values_TC)], :, None]
    blocks_TBC = values_TC.unflatten(1, (kept_PB.shape[1], -1))
    return blocks_TBC.masked_fill(~kept_TB1, 0).flatten(1)


def _scale_gates_by_pool(
    gates_TK: Tensor, ids_TK: Tensor, scale_PE: Tensor, pool_T: Tensor
) -> Tensor:
    """Gates times the factor of their expert in each token's pool; ids below 0 are no expert."""
    rows_T1 = pool_T[: len(ids_TK), None].long()
    return gates_TK * scale_PE[rows_T1, ids_TK.clamp(min=0).long()].to(gates_TK.dtype)


def _normalised(values: Tensor, eps: float) -> Tensor:
    return values * torch.rsqrt(values.square().mean(-1, keepdim=True) + eps)


def _rms_norm_by_pool_cuda(
    hidden_THD: Tensor, weight_PD: Tensor, pool_T: Tensor, eps: float
) -> Tensor:
    # Triton is absent on CPU-only hosts.
    from slimwise_vllm.trained_kernels import norm_rows

    return norm_rows(hidden_THD, weight_PD, pool_T, eps)


def _add_rms_norm_by_pool_cuda(
    hidden_TD: Tensor, residual_TD: Tensor, weight_PD: Tensor, pool_T: Tensor, eps: float
) -> tuple[Tensor, Tensor]:
    from slimwise_vllm.trained_kernels import norm_rows

    sum_TD = torch.empty_like(hidden_TD, memory_format=torch.contiguous_format)
    residual_T1D = residual_TD.unsqueeze(1)
    normed_T1D = norm_rows(
        hidden_TD.unsqueeze(1), weight_PD, pool_T, eps, residual_THD=residual_T1D, sum_out=sum_TD
    )
    return normed_T1D.squeeze(1), sum_TD


def _gated_rms_norm_by_pool_cuda(
    hidden_THD: Tensor,
    gate_THD: Tensor,
    weight_PD: Tensor,
    pool_T: Tensor,
    eps: float,
    sigmoid: bool,
) -> Tensor:
    from slimwise_vllm.trained_kernels import norm_rows

    return norm_rows(hidden_THD, weight_PD, pool_T, eps, gate_THD=gate_THD, sigmoid=sigmoid)


def _scale_by_pool_cuda(values_TD: Tensor, scale_PD: Tensor, pool_T: Tensor) -> Tensor:
    from slimwise_vllm.trained_kernels import scale_rows

    return scale_rows(values_TD, scale_PD, pool_T)


def _keep_blocks_of_pool_cuda(values_TC: Tensor, kept_PB: Tensor, pool_T: Tensor) -> Tensor:
    from slimwise_vllm.trained_kernels import keep_blocks

    return keep_blocks(values_TC, kept_PB, pool_T)


def _scale_gates_by_pool_cuda(
    gates_TK: Tensor, ids_TK: Tensor, scale_PE: Tensor, pool_T: Tensor
) -> Tensor:
    from slimwise_vllm.trained_kernels import scale_choices

    return scale_choices(gates_TK, ids_TK, scale_PE, pool_T)


def _contiguous_like(values: Tensor, *_: object) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


def _add_rms_norm_by_pool_fake(hidden_TD: Tensor, *_: object) -> tuple[Tensor, Tensor]:
    return _contiguous_like(hidden_TD), _contiguous_like(hidden_TD)


_rms_norm_by_pool_fake = _contiguous_like
_gated_rms_norm_by_pool_fake = _contiguous_like
_scale_by_pool_fake = _contiguous_like
_keep_blocks_of_pool_fake = _contiguous_like
_scale_gates_by_pool_fake = _contiguous_like
