"""The observation of one process's rows, which resumes where it was stopped."""

import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from tqdm import tqdm

from slimwise.calibrate.batch_limit import BatchLimit, peak_gib
from slimwise.calibrate.batches import TokenBatch, first_batch
from slimwise.calibrate.observer import RoutingObserver
from slimwise.calibrate.progress import load_progress, save_progress
from slimwise.calibrate.rows import MixtureRows
from slimwise.core.routing_stats import RoutingStats
from slimwise.provenance import current_provenance

logger = logging.getLogger(__name__)


def collect(
    observer: RoutingObserver,
    rows: MixtureRows,
    limit: BatchLimit,
    nothing: Mapping[str, RoutingStats],
    *,
    state: Path,
    save_every_batches: int,
    meter: "Meter",
) -> dict[str, RoutingStats]:
    """Statistics by component; nothing holds the zeros that they start from.

    The sums so far lie in the folder state.
    """
    stats, num_done = load_progress(state) or (dict(nothing), 0)
    meter.start(rows, num_done)
    num_batches = 0
    while num_done < len(rows):
        batch, found = _observed(observer, rows, num_done, limit)
        component = rows.component(num_done)
        stats[component] = stats[component] + found
        num_done += batch.num_rows
        num_batches += 1
        meter.advance(batch)
        if num_batches % save_every_batches == 0:
            save_progress(state, stats, num_done, current_provenance())
            meter.log(limit.tokens)
    meter.log(limit.tokens)
    return stats


def _observed(
    observer: RoutingObserver, rows: MixtureRows, begin: int, limit: BatchLimit
) -> tuple[TokenBatch, RoutingStats]:
    """The batch that begins there, halved until memory suffices, and its statistics."""
    while True:
        batch = first_batch(rows.of_one_component(begin), limit.tokens)
        try:
            with limit.learning(batch):
                return batch, observer.observe(batch)
        except torch.OutOfMemoryError:
            logger.debug("out of memory", exc_info=True)
        # Behind the handler, whose traceback keeps the tensors of the pass that failed.
        limit.halve(batch)


class Meter:
    """Speed, time left and peak memory of a run, as a bar on a terminal and as lines of the log."""

    def __init__(self, devices: Sequence[torch.device], *, is_shown: bool) -> None:
        self._devices = devices
        self._is_shown = is_shown

    def start(self, rows: MixtureRows, num_done: int) -> None:
        """Begin to count; num_done rows lie behind."""
        self._total, self._before = rows.num_tokens(), rows.num_tokens(0, num_done)
        self._done = self._before
        self._started = time.perf_counter()
        self._bar = tqdm(
            total=self._total,
            initial=self._before,
            unit="token",
            unit_scale=True,
            disable=None if self._is_shown else True,
        )

    def advance(self, batch: TokenBatch) -> None:
        """Count the batch's tokens as observed."""
        self._done += batch.num_tokens
        self._bar.update(batch.num_tokens)

    def log(self, batch_tokens: int) -> None:
        """One line with the speed so far, tokens/s, the minutes left and the peak memory, GiB."""
        if not self._is_shown:
            return
        seconds = max(time.perf_counter() - self._started, 1e-9)
        speed = (self._done - self._before) / seconds
        left = (self._total - self._done) / speed / 60 if speed else 0.0
        peak = peak_gib(self._devices)
        logger.info(
            "observed %.3f of %.3f M tokens (%.3f M before this run): %.1f s, %.0f tokens/s, "
            "%.1f min left, batches of at most %d tokens%s",
            self._done / 1e6,
            self._total / 1e6,
            self._before / 1e6,
            seconds,
            speed,
            left,
            batch_tokens,
            "" if peak is None else f", peak {peak:.1f} GiB",
        )
