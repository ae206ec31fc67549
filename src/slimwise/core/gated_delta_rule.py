"""Linear attention by the gated delta rule, in blocks of positions and two levels of scan.

A block changes the recurrent state S by a linear map: S' = M S + A. The state before each block
comes from composing such maps, first within groups of blocks and for all groups at once, then from
group to group: for N blocks about 2 sqrt(N) dependent steps and memory that is linear in N.
Gated DeltaNet (Yang et al. 2024), section 3, has the maps.
Legend: B sequences, H heads, S positions, N blocks, C positions of a block, K key width, V value
width.
"""

# torch leaves functions of its own untyped, whose results then are.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false

import functools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

BLOCK_POSITIONS = 64
_MAX_DEPENDENT_STEPS = 16


@dataclass(frozen=True)
class DeltaInputs:
    """Per position and head: query (scaled), key (of length one), value, log-decay <= 0, beta."""

    query_BHSK: Tensor
    key_BHSK: Tensor
    value_BHSV: Tensor
    log_decay_BHS: Tensor
    beta_BHS: Tensor


def gated_delta_rule(inputs: DeltaInputs, state_BHKV: Tensor | None) -> tuple[Tensor, Tensor]:
    """Outputs [B, H, S, V] and the state after the last position, float32.

    S_t = exp(g_t) (I - beta_t k_t k_t^T) S_(t-1) + beta_t k_t v_t^T, and o_t = q_t S_t. No state
    before means zero. Gated DeltaNet, equation 10.
    """
    num_positions = inputs.key_BHSK.shape[2]
    query, key, value, log_decay, beta = _blocks(inputs)
    sums = log_decay.cumsum(dim=-1)
    decay = _decay_between(sums)
    beta_key = key * beta.unsqueeze(-1)
    solved: Tensor = UnitLowerInverse.apply((beta_key @ key.mT) * decay)
    new_values = solved @ (value * beta.unsqueeze(-1))
    read_keys = solved @ (beta_key * sums.exp().unsqueeze(-1))
    attention = (query @ key.mT) * decay
    written_keys = (key * (sums[..., -1:] - sums).exp().unsqueeze(-1)).mT
    maps = -(written_keys @ read_keys)
    maps = maps + torch.diag_embed(sums[..., -1].exp().unsqueeze(-1).expand(maps.shape[:-1]))
    states, last = _states(maps, written_keys @ new_values, state_BHKV)
    corrected = new_values - read_keys @ states
    outputs = (query * sums.exp().unsqueeze(-1)) @ states + attention @ corrected
    return outputs.flatten(2, 3)[:, :, :num_positions], last


def _blocks(inputs: DeltaInputs) -> list[Tensor]:
    """All inputs float32 and [B, H, N, C, ...], padded by positions that leave the state alone."""
    num_padding = -inputs.key_BHSK.shape[2] % BLOCK_POSITIONS
    blocks: list[Tensor] = []
    for tensor in vars(inputs).values():
        padding = (0, num_padding) if tensor.dim() == 3 else (0, 0, 0, num_padding)
        padded = functional.pad(tensor.float(), padding) if num_padding else tensor.float()
        blocks.append(padded.unflatten(2, (-1, BLOCK_POSITIONS)))
    return blocks


def _decay_between(sums_C: Tensor) -> Tensor:
    """Decay from position j to position i >= j of a block, [..., C, C]; zero elsewhere."""
    between = sums_C.unsqueeze(-1) - sums_C.unsqueeze(-2)
    # Masked before the exponential, which would overflow there.
    return between.masked_fill(_later(sums_C.device), -torch.inf).exp()


@functools.cache
def _later(device: torch.device) -> Tensor:
    """True where the column is a later position than the row."""
    return torch.ones(BLOCK_POSITIONS, BLOCK_POSITIONS, dtype=torch.bool, device=device).triu(1)


def _states(
    maps_BHNKK: Tensor, added_BHNKV: Tensor, first_BHKV: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The state before each block, [B, H, N, K, V], and after the last: S' = map S + added."""
    if first_BHKV is None:
        first_BHKV = torch.zeros_like(added_BHNKV[:, :, 0])
    num_blocks = maps_BHNKK.shape[2]
    if num_blocks <= _MAX_DEPENDENT_STEPS:
        return _scan(maps_BHNKK, added_BHNKV, first_BHKV.float())
    size = round(num_blocks**0.5)
    maps, added = _grouped(maps_BHNKK, size, identity=True), _grouped(added_BHNKV, size)
    # What each group does to any state before it: [its map, what it adds], block by block.
    width = maps.shape[-1]
    identity = torch.eye(width, device=maps.device).expand(*maps.shape[:3], -1, -1)
    begun = torch.cat([identity, torch.zeros_like(added[..., 0, :, :])], dim=-1)
    widened = torch.cat([torch.zeros_like(maps), added], dim=-1)
    within, total = _scan(maps, widened, begun)
    before, last = _scan(total[..., :width], total[..., width:], first_BHKV.float())
    states = within[..., :width] @ before.unsqueeze(3) + within[..., width:]
    return states.flatten(2, 3)[:, :, :num_blocks], last


def _grouped(blocks_BHN: Tensor, size: int, *, identity: bool = False) -> Tensor:
    """Blocks [B, H, N, ...] in groups of that size, filled up by maps that change nothing."""
    num_missing = -blocks_BHN.shape[2] % size
    filler = torch.zeros_like(blocks_BHN[:, :, :1]).expand(-1, -1, num_missing, -1, -1)
    if identity:
        filler = filler + torch.eye(blocks_BHN.shape[-1], device=blocks_BHN.device)
    return torch.cat([blocks_BHN, filler], dim=2).unflatten(2, (-1, size))


def _scan(maps: Tensor, added: Tensor, first: Tensor) -> tuple[Tensor, Tensor]:
    """The values before each step of x' = map x + added along the third last dimension, and last.

    Unbound and stacked: an index a step would cost a gradient of full size a step.
    """
    before: list[Tensor] = []
    value = first.flatten(0, -3)
    for step_map, step_added in zip(maps.unbind(-3), added.unbind(-3), strict=True):
        before.append(value)
        value = torch.baddbmm(step_added.flatten(0, -3), step_map.flatten(0, -3), value)
    stacked = torch.stack(before, dim=1).unflatten(0, first.shape[:-2])
    return stacked, value.unflatten(0, first.shape[:-2])


class UnitLowerInverse(torch.autograd.Function):
    """Inverse of I + L, where L is the part of the argument below the diagonal, [..., C, C].

    By blocks of twice the size each round, which is as stable as substitution and all matrix
    products: batched triangular solvers are slow on GPUs.
    """

    @staticmethod
    def forward(ctx: Any, matrix: Tensor) -> Tensor:
        """The inverse, of the shape and dtype of the matrix."""
        first, *joins = _joins(matrix.shape[-1], matrix.device)
        inverse = torch.eye(matrix.shape[-1], device=matrix.device) - matrix * first
        for join in joins:
            inverse = inverse - inverse @ (matrix * join) @ inverse
        ctx.save_for_backward(inverse)
        return inverse

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """The gradient of the matrix's part below its diagonal."""
        (inverse,) = ctx.saved_tensors
        return -(inverse.mT @ gradients[0] @ inverse.mT).tril(-1)


@functools.cache
def _joins(size: int, device: torch.device) -> tuple[Tensor, ...]:
    """For blocks of 1, 2, 4, ... positions: 1 where the second of a pair meets the first."""
    index = torch.arange(size, device=device)
    joins: list[Tensor] = []
    for block in (2**power for power in range((size - 1).bit_length())):
        number = index // block
        joins.append(((number[:, None] == number + 1) & (number % 2 == 0)).float())
    return tuple(joins)
