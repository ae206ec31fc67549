"""Benchmarks whose answers are programs, graded by evalplus's tests."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from slimwise.benchmarks.base import BenchmarkItem, Grade
from slimwise.benchmarks.code.answers import program_grader
from slimwise.benchmarks.data import DataSource, Row, read_data
from slimwise.benchmarks.few_shot import num_shots
from slimwise.benchmarks.settings import USUAL, DataSettings, GradingLimits


@dataclass(frozen=True)
class ProgramBenchmark:
    """Tasks in their published order, without shots; broken are those that no program passes."""

    name: str
    source: DataSource
    item_of: Callable[[Row], BenchmarkItem]
    broken: Mapping[str, str] = field(default_factory=dict)
    settings: DataSettings = USUAL

    def items(self, count: int) -> list[BenchmarkItem]:
        """The first count tasks."""
        num_shots(self.name, self.settings, default=0, limit=0)
        return [
            self.item_of(row) for row in read_data(self.source, self.settings.folder).rows[:count]
        ]

    def origin(self) -> str:
        """The data, with revision and digest."""
        return str(read_data(self.source, self.settings.folder))

    def grader(
        self, references: Sequence[Mapping[str, Any]], limits: GradingLimits
    ) -> AbstractContextManager[Grade]:
        """Verdicts by all tests, base and added; findings by the assertions of a reference."""
        return program_grader(references, limits, self.broken)
