"""GSM8K: grade-school word problems, with solved ones before each, as lm-eval's gsm8k task asks."""

import random
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from slimwise.benchmarks.base import BenchmarkItem, Grade
from slimwise.benchmarks.data import DataSource, Row, read_data
from slimwise.benchmarks.few_shot import conversation, num_shots
from slimwise.benchmarks.maths.grading import maths_grader
from slimwise.benchmarks.settings import USUAL, DataSettings, GradingLimits

TEST = DataSource(
    dataset="openai/gsm8k",
    revision="740312add88f781978c0658806c59bc2815b9866",
    subset="main",
    split="test",
    local="gsm8k/test.jsonl",
    num_rows=1319,
    columns=("question", "answer"),
)
TRAIN = DataSource(
    dataset=TEST.dataset,
    revision=TEST.revision,
    subset=TEST.subset,
    split="train",
    local="gsm8k/train.jsonl",
    num_rows=7473,
    columns=TEST.columns,
)
_SHOTS_SEED = 1234  # lm-eval's: each item is preceded by shots of its own, the same in every run
_NUM_SHOTS = 5
_GOLD_MARK = "####"


@dataclass(frozen=True)
class Gsm8k:
    """Test items in their published order; references hold the number after the gold mark."""

    settings: DataSettings = USUAL

    @property
    def name(self) -> str:
        return "gsm8k"

    def items(self, count: int) -> list[BenchmarkItem]:
        """The first count items."""
        rows = read_data(TEST, self.settings.folder).rows[:count]
        shots = self._shots(len(rows))
        return [
            BenchmarkItem(
                str(index),
                conversation([_turn(shot) for shot in before], _turn(row)[0]),
                {"answer": gold_answer(row["answer"])},
            )
            for index, (row, before) in enumerate(zip(rows, shots, strict=True))
        ]

    def origin(self) -> str:
        """Both splits, with revision and digest."""
        return "; ".join(str(read_data(source, self.settings.folder)) for source in (TEST, TRAIN))

    def grader(
        self, references: Sequence[Mapping[str, Any]], limits: GradingLimits
    ) -> AbstractContextManager[Grade]:
        """Verdicts by the final answer."""
        return maths_grader(limits)

    def _shots(self, num_items: int) -> list[Sequence[Row]]:
        train = read_data(TRAIN, self.settings.folder).rows
        count = num_shots(self.name, self.settings, default=_NUM_SHOTS, limit=len(train))
        rng = random.Random(_SHOTS_SEED)
        return [rng.sample(train, count) for _ in range(num_items)]


def gold_answer(solution: str) -> str:
    """The number that ends a published solution."""
    return solution.rpartition(_GOLD_MARK)[2].strip()


def _turn(row: Row) -> tuple[str, str]:
    return f"Question: {row['question']}\nAnswer:", row["answer"]
