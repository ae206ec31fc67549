"""Settings of vLLM's Triton kernel of the experts that are worth timing.

A decode step reads its experts once, a few tokens each: what helps is loading early, in many
pieces. So the settings of a small batch have short tiles of tokens and deep pipelines, those of a
prefill step large tiles and groups of tiles that share an expert's weights in the cache.
"""

from collections.abc import Iterator, Sequence
from itertools import product

KernelConfig = dict[str, int]
"""As vLLM's files have it: sizes of tiles, tiles in a group, warps and pipeline stages."""

_TOKEN_TILES = (16, 32, 64, 128)
_SHARED_MEMORY_BYTES = 227 * 1024
"""Of a block, on the GPUs since Hopper; a larger setting fails when it is launched."""
_ELEMENT_BYTES = 2
_ACCUMULATORS_PER_THREAD = 128
_WARP_THREADS = 32
_COMPUTE_BOUND_TOKENS = 64
"""Tokens of an expert from which its weights are read faster than they are multiplied."""


def candidates(tokens_per_expert: float) -> Iterator[KernelConfig]:
    """Settings to time for a step that routes that many tokens to an expert in the mean."""
    is_compute_bound = tokens_per_expert >= _COMPUTE_BOUND_TOKENS
    choices = product(
        _token_tiles(tokens_per_expert),
        (128, 256) if is_compute_bound else (32, 64, 128, 256),
        (64,) if is_compute_bound else (64, 128, 256),
        (1, 16) if is_compute_bound else (1,),
        (4, 8),
        (3, 4) if is_compute_bound else (3, 4, 5),
    )
    for rows, columns, depth, group, warps, stages in choices:
        accumulators = rows * columns / (warps * _WARP_THREADS)
        stage_bytes = (rows + columns) * depth * _ELEMENT_BYTES
        wastes_warps = warps > 4 and columns < 128
        if (
            stage_bytes * stages <= _SHARED_MEMORY_BYTES
            and accumulators <= _ACCUMULATORS_PER_THREAD
            and not wastes_warps
        ):
            yield kernel_config((rows, columns, depth), group, warps, stages)


def kernel_config(tile: tuple[int, int, int], group: int, warps: int, stages: int) -> KernelConfig:
    """The setting in vLLM's words; a tile is tokens, output columns and inner width."""
    rows, columns, depth = tile
    return {
        "BLOCK_SIZE_M": rows,
        "BLOCK_SIZE_N": columns,
        "BLOCK_SIZE_K": depth,
        "GROUP_SIZE_M": group,
        "num_warps": warps,
        "num_stages": stages,
    }


def all_candidates(loads: Sequence[float]) -> list[KernelConfig]:
    """The candidates of several loads, each once."""
    found = {tuple(config.items()): config for load in loads for config in candidates(load)}
    return list(found.values())


def _token_tiles(tokens_per_expert: float) -> list[int]:
    """Tiles from a quarter of the tokens to four times as many."""
    least = min(tokens_per_expert / 4, 64)
    most = max(4 * tokens_per_expert, _TOKEN_TILES[0])
    return [tile for tile in _TOKEN_TILES if least <= tile <= most]
