"""What a study may set of its benchmarks: where their data lie, and what a grader may use."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataSettings:
    """A local folder of data instead of the hub, and a number of shots instead of the usual."""

    folder: Path | None = None
    num_shots: int | None = None


USUAL = DataSettings()
"""From the hub, with lm-eval's shots."""


@dataclass(frozen=True)
class GradingLimits:
    """Answers graded at once, and what one of them may cost; cache holds what can be kept.

    program_time_s is wall-clock and CPU seconds alike, program_memory_gib address space.
    """

    workers: int
    maths_timeout_s: float
    program_time_s: int
    program_memory_gib: float
    cache: Path
