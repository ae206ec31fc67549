"""HumanEval+: functions to complete, with evalplus's tests; prompts as in lm-eval's chat task."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from slimwise.benchmarks.base import BenchmarkItem, Grade
from slimwise.benchmarks.code.answers import program_grader
from slimwise.benchmarks.code.program import preamble_of
from slimwise.benchmarks.data import DataSource, Row, read_data
from slimwise.benchmarks.few_shot import conversation, num_shots
from slimwise.benchmarks.settings import USUAL, DataSettings, GradingLimits

TEST = DataSource(
    dataset="evalplus/humanevalplus",
    revision="d32357cf319e50e9c8d8dab5ea876c72b0fd321b",
    split="test",
    local="humanevalplus/HumanEvalPlus-OriginFmt.jsonl",
    num_rows=164,
    columns=("task_id", "prompt", "canonical_solution", "entry_point", "test"),
)
BROKEN = MappingProxyType({"HumanEval/32": "its assertion compares a root with its polynomial"})
"""Items that no program passes, by what is wrong with them."""


@dataclass(frozen=True)
class HumanEvalPlus:
    """Tasks in their published order, without shots."""

    settings: DataSettings = USUAL

    @property
    def name(self) -> str:
        return "humaneval_plus"

    def items(self, count: int) -> list[BenchmarkItem]:
        """The first count tasks."""
        num_shots(self.name, self.settings, default=0, limit=0)
        return [_item(row) for row in read_data(TEST, self.settings.folder).rows[:count]]

    def origin(self) -> str:
        """The data, with revision and digest."""
        return str(read_data(TEST, self.settings.folder))

    def grader(
        self, references: Sequence[Mapping[str, Any]], limits: GradingLimits
    ) -> AbstractContextManager[Grade]:
        """Verdicts by all tests, base and added; what the prompt defines is there for answers."""
        return program_grader(references, limits, BROKEN)


def _item(row: Row) -> BenchmarkItem:
    prompt, entry = row["prompt"], row["entry_point"]
    question = (
        "Write a solution to the following problem and make sure that it passes the tests:\n"
        f"```python\n{prompt}\n```\n"
    )
    reference = {
        "task_id": row["task_id"],
        "entry_point": entry,
        "preamble": preamble_of(prompt, entry),
        "canonical_solution": prompt + row["canonical_solution"],
        "test": row["test"],
        "assertions": [],
    }
    return BenchmarkItem(row["task_id"], conversation([], question), reference)
