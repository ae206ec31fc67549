"""The pool of every token of an engine step, in a buffer that CUDA graphs can read.

Legend: T tokens of a step, R requests of a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from slimwise.core.vocabulary import Phase
from slimwise_vllm.request_pools import PhasePools

PHASES = tuple(Phase)
PADDING = len(PHASES)
"""Code of rows that belong to no request, after the codes 0.. of PHASES."""


@dataclass(frozen=True)
class StepBatch:
    """The requests of one step in batch order: their pools, and token counts."""

    pools: Sequence[PhasePools]
    num_prompt_R: NDArray[np.integer]
    num_computed_R: NDArray[np.integer]
    num_scheduled_R: NDArray[np.integer]


def phase_lengths(batch: StepBatch, first_decode_offset: int) -> NDArray[np.integer]:
    """Tokens of the step before and from each request's first decode position, [R, 2].

    By position, so chunks, recomputation after preemption and drafts need no cases of their own.
    """
    first_decode_R = np.maximum(batch.num_prompt_R + first_decode_offset, 0)
    num_prefill_R = np.clip(first_decode_R - batch.num_computed_R, 0, batch.num_scheduled_R)
    return np.stack([num_prefill_R, batch.num_scheduled_R - num_prefill_R], 1)


class TokenPools:
    """Persistent buffers of pool and phase, int32 [T], refilled before every step."""

    def __init__(self, num_rows: int, num_kept: Sequence[int], device: torch.device) -> None:
        self.pool_T = torch.zeros(num_rows, dtype=torch.int32, device=device)
        self.phase_T = torch.full_like(self.pool_T, PADDING)
        self._num_kept = np.asarray(num_kept)

    def fill(self, batch: StepBatch, first_decode_offset: int) -> NDArray[np.integer]:
        """Write the step's tokens and return phase_lengths summed over the requests.

        Rows after them pad a CUDA graph. They count as decode and get the smallest decode pool
        of the step, so that padding never reads an expert that decode would not.
        """
        lengths_R2 = phase_lengths(batch, first_decode_offset)
        pools_R2 = np.asarray(batch.pools, dtype=np.int32).reshape(-1, len(PHASES))
        phases_R2 = np.broadcast_to(np.arange(len(PHASES), dtype=np.int32), pools_R2.shape)
        decode_R = pools_R2[:, 1]
        padding_pool = int(decode_R[self._num_kept[decode_R].argmin()])
        _write(self.pool_T, pools_R2, lengths_R2, padding_pool)
        _write(self.phase_T, phases_R2, lengths_R2, PADDING)
        return lengths_R2.sum(0)

    def clear(self) -> None:
        """Make every row padding on the full pool, for runs that belong to no request."""
        self.pool_T.zero_()
        self.phase_T.fill_(PADDING)


def _write(
    buffer_T: Tensor, values_R2: NDArray[np.int32], lengths_R2: NDArray[np.integer], rest: int
) -> None:
    values = torch.from_numpy(np.repeat(values_R2.ravel(), lengths_R2.ravel()))
    if buffer_T.device.type == "cuda":
        # Pinned anew each time: the last step's copy may not have left its memory yet.
        values = values.pin_memory()
    buffer_T[: len(values)].copy_(values, non_blocking=True)
    buffer_T[len(values) :].fill_(rest)
