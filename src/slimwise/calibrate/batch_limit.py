"""How many positions a forward pass may have."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from slimwise.calibrate.batches import TokenBatch
from slimwise.errors import ConfigError

logger = logging.getLogger(__name__)

_CPU_TOKENS = 16384
# Larger batches are no faster on a GPU, and hidden states of one token for each of its experts pass
# 2**31 values, at which kernels count wrong.
_MOST_TOKENS = 65536
_SHARE_OF_FREE = 0.8
_GIB = 2**30


class BatchLimit:
    """Positions that the next batch may have: as asked, or as many as the GPUs have memory for.

    The first batch on a GPU is one sequence; what it takes tells how many fit.
    """

    def __init__(self, batch_tokens: int | None, devices: Sequence[torch.device]) -> None:
        self._gpus = [device for device in devices if device.type == "cuda"]
        self._is_known = batch_tokens is not None or not self._gpus
        self.tokens = batch_tokens or (1 if self._gpus else _CPU_TOKENS)

    @contextmanager
    def learning(self, batch: TokenBatch) -> Iterator[None]:
        """Within it the batch is computed; the limit follows from the first one's memory."""
        if self._is_known:
            yield
            return
        before = [torch.cuda.memory_allocated(gpu) for gpu in self._gpus]
        for gpu in self._gpus:
            torch.cuda.reset_peak_memory_stats(gpu)
        yield
        self.tokens = min(
            tokens_that_fit(_free_bytes(gpu), torch.cuda.max_memory_allocated(gpu) - used, batch)
            for gpu, used in zip(self._gpus, before, strict=True)
        )
        self._is_known = True
        logger.info("batches of at most %d tokens fit in free memory", self.tokens)

    def halve(self, batch: TokenBatch) -> None:
        """Lower the limit after a batch for which there was too little memory.

        ConfigError if it was a single sequence.
        """
        if batch.num_rows == 1:
            raise ConfigError(
                f"a sequence of {batch.num_positions} tokens does not fit in the memory that the "
                "model leaves. Lower calibration.max_sequence_tokens, or raise "
                "calibration.gpus_per_model."
            )
        self.tokens = batch.num_positions // 2
        logger.warning(
            "a batch of %d positions ran out of memory: at most %d from here on",
            batch.num_positions,
            self.tokens,
        )
        if self._gpus:
            torch.cuda.empty_cache()


def tokens_that_fit(free_bytes: int, taken_bytes: int, batch: TokenBatch) -> int:
    """Positions for most of the free memory, where the batch took taken_bytes of it."""
    per_position = max(taken_bytes, 1) / batch.num_positions
    return max(min(int(_SHARE_OF_FREE * free_bytes / per_position), _MOST_TOKENS), 1)


def peak_gib(devices: Sequence[torch.device]) -> float | None:
    """The most that tensors took on any of the GPUs; None on the CPU."""
    gpus = [device for device in devices if device.type == "cuda"]
    return max((torch.cuda.max_memory_allocated(gpu) / _GIB for gpu in gpus), default=None)


def _free_bytes(gpu: torch.device) -> int:
    """What the driver has left, and what the allocator holds without using it."""
    unused = torch.cuda.memory_reserved(gpu) - torch.cuda.memory_allocated(gpu)
    return torch.cuda.mem_get_info(gpu)[0] + unused
