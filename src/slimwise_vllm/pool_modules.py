"""Modules of a loaded model in which each token reads the trained values of its own pool.

Tables are buffers with a row for every pool, as the operators want them.
Legend: T tokens, P pools, D hidden (or head) width, H heads, B blocks of columns.
"""

from typing import Any

import torch
from torch import Tensor, nn


class PoolNorm(nn.Module):
    """A root-mean-square norm; weight_PD multiplies what is normalised."""

    weight_PD: Tensor
    pool_T: Tensor

    def __init__(self, weight_PD: Tensor, pool_T: Tensor, eps: float) -> None:
        super().__init__()
        _keep(self, weight_PD=weight_PD, pool_T=pool_T)
        self.variance_epsilon = eps

    def forward(self, hidden: Tensor, residual: Tensor | None = None) -> Any:
        """The norm of [T, D], or of every head of [T, H, D]; with a residual, norm and sum."""
        tables = self.weight_PD, self.pool_T, self.variance_epsilon
        if residual is not None:
            return torch.ops.slimwise.add_rms_norm_by_pool(hidden, residual, *tables)
        if hidden.dim() == 3:
            return torch.ops.slimwise.rms_norm_by_pool(hidden, *tables)
        return torch.ops.slimwise.rms_norm_by_pool(hidden.unsqueeze(1), *tables).squeeze(1)


class PoolGatedNorm(nn.Module):
    """A norm of heads, each multiplied by its activated gate."""

    weight_PD: Tensor
    pool_T: Tensor

    def __init__(self, weight_PD: Tensor, pool_T: Tensor, frozen: Any, num_heads: int) -> None:
        super().__init__()
        _keep(self, weight_PD=weight_PD, pool_T=pool_T)
        self._eps = frozen.eps
        self._num_heads = num_heads
        self._sigmoid = frozen.activation == "sigmoid"

    def forward(self, hidden: Tensor, gate: Tensor) -> Tensor:
        """The gated norm of [T, H, D], or of the heads of all tokens in a row, [T * H, D]."""
        by_token = (-1, self._num_heads, hidden.shape[-1])
        normed_THD = torch.ops.slimwise.gated_rms_norm_by_pool(
            hidden.reshape(by_token),
            gate.reshape(by_token),
            self.weight_PD,
            self.pool_T,
            self._eps,
            self._sigmoid,
        )
        return normed_THD.view(hidden.shape)


class PoolActivation(nn.Module):
    """The activation of several shared experts side by side, zero in those of other pools."""

    kept_PB: Tensor
    pool_T: Tensor

    def __init__(self, frozen: nn.Module, kept_PB: Tensor, pool_T: Tensor) -> None:
        super().__init__()
        self.frozen = frozen
        _keep(self, kept_PB=kept_PB, pool_T=pool_T)

    def forward(self, gate_up: Tensor) -> Tensor:
        """The activation [T, F], zero where a token's pool has no such block."""
        return torch.ops.slimwise.keep_blocks_of_pool(
            self.frozen(gate_up), self.kept_PB, self.pool_T
        )


class PoolScaledRouter(nn.Module):
    """A router that scales its input, with the scale of each token's pool."""

    scale_PD: Tensor
    pool_T: Tensor

    def __init__(self, frozen: Any, scale_PD: Tensor, pool_T: Tensor) -> None:
        super().__init__()
        self.frozen = frozen
        _keep(self, scale_PD=scale_PD, pool_T=pool_T)

    def forward(self, hidden_TD: Tensor) -> Tensor:
        """Router logits [T, E], each token by its pool's scale."""
        normed_TD = self.frozen.norm(hidden_TD)
        scaled_TD = normed_TD * self.frozen.root_size.to(normed_TD.dtype)
        scaled_TD = torch.ops.slimwise.scale_by_pool(scaled_TD, self.scale_PD, self.pool_T)
        logits, _ = self.frozen.proj(scaled_TD)
        return logits


def _keep(module: nn.Module, **tables: Tensor) -> None:
    for name, table in tables.items():
        module.register_buffer(name, table, persistent=False)
