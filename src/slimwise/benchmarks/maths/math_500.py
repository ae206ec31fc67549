"""MATH-500: competition problems after the four solved ones of lm-eval's minerva_math500 task."""

import functools
import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import resources
from typing import Any

from slimwise.benchmarks.base import BenchmarkItem, Grade
from slimwise.benchmarks.data import DataSource, Row, read_data
from slimwise.benchmarks.few_shot import conversation, num_shots
from slimwise.benchmarks.maths.grading import maths_grader
from slimwise.benchmarks.settings import USUAL, DataSettings, GradingLimits

TEST = DataSource(
    dataset="HuggingFaceH4/MATH-500",
    revision="6e4ed1a2a79af7d8630a6b768ec859cb5af4d3be",
    split="test",
    local="math500/test.jsonl",
    num_rows=500,
    columns=("problem", "answer", "unique_id"),
)


@dataclass(frozen=True)
class Math500:
    """Test items in their published order; references hold the published answer."""

    settings: DataSettings = USUAL

    @property
    def name(self) -> str:
        return "math_500"

    def items(self, count: int) -> list[BenchmarkItem]:
        """The first count items."""
        shots = _shots()
        chosen = num_shots(self.name, self.settings, default=len(shots), limit=len(shots))
        turns = [(_question(shot), shot["solution"]) for shot in shots[:chosen]]
        return [
            BenchmarkItem(
                row["unique_id"], conversation(turns, _question(row)), {"answer": row["answer"]}
            )
            for row in read_data(TEST, self.settings.folder).rows[:count]
        ]

    def origin(self) -> str:
        """The split, with revision and digest."""
        return str(read_data(TEST, self.settings.folder))

    def grader(
        self, references: Sequence[Mapping[str, Any]], limits: GradingLimits
    ) -> AbstractContextManager[Grade]:
        """Verdicts by the final answer."""
        return maths_grader(limits)


def _question(row: Row) -> str:
    return f"Problem:\n{row['problem']}\n\nSolution:"


@functools.cache
def _shots() -> list[Row]:
    """Lewkowycz et al. (2022), appendix D: problems of MATH's training set, MIT licence."""
    file = resources.files("slimwise.benchmarks.maths") / "math_500_shots.json"
    return json.loads(file.read_text("utf-8"))
