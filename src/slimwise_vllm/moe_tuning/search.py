"""The fastest setting of the kernel among many, by a quick look at all and a careful one at a few.

Graphs of what is out of the race are let go at once, since each holds memory.
"""

import heapq
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from slimwise_vllm.moe_tuning.candidates import KernelConfig

_QUICK_REPLAYS = 3


class Timed(Protocol):
    """A setting that can be timed again and again."""

    config: KernelConfig

    def microseconds(self) -> float:
        """The time of one step, microseconds."""
        ...


Prepare = Callable[[KernelConfig], Timed | None]
"""Makes a setting ready to be timed; None if the device refuses it."""


@dataclass(frozen=True)
class Fastest:
    """The fastest setting, its time, and the times of the settings that it was compared with."""

    config: KernelConfig
    tuned_us: float
    reference_us: dict[str, float]


def fastest(
    prepare: Prepare,
    choices: Iterable[KernelConfig],
    references: Mapping[str, KernelConfig],
    *,
    finalists: int,
    rounds: int,
) -> Fastest:
    """The fastest of the choices and the references, which are timed in turns with the finalists.

    Times are medians over the rounds, so that the drift of a clock favours no setting.
    """
    raced = _quick(prepare, choices, finalists)
    compared = {name: prepare(config) for name, config in references.items()}
    raced += [timed for timed in compared.values() if timed is not None]
    times: dict[int, list[float]] = {id(timed): [] for timed in raced}
    for _ in range(rounds):
        for timed in raced:
            times[id(timed)].append(timed.microseconds())
    medians = {key: statistics.median(found) for key, found in times.items()}
    best = min(raced, key=lambda timed: medians[id(timed)])
    reference_us = {
        name: medians[id(timed)] for name, timed in compared.items() if timed is not None
    }
    return Fastest(best.config, medians[id(best)], reference_us)


def _quick(prepare: Prepare, choices: Iterable[KernelConfig], finalists: int) -> list[Timed]:
    """The few of the choices whose best replay is shortest."""
    kept: list[tuple[float, int, Timed]] = []
    for number, config in enumerate(choices):
        timed = prepare(config)
        if timed is None:
            continue
        entry = -min(timed.microseconds() for _ in range(_QUICK_REPLAYS)), number, timed
        if len(kept) < finalists:
            heapq.heappush(kept, entry)
        else:
            heapq.heappushpop(kept, entry)
    return [timed for _, _, timed in kept]
