"""MBPP+: small tasks in a sentence, with evalplus's tests; prompts as in lm-eval's chat task."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from slimwise.benchmarks.base import BenchmarkItem, Grade
from slimwise.benchmarks.code.answers import program_grader
from slimwise.benchmarks.code.suite import tested_function
from slimwise.benchmarks.data import DataSource, Row, read_data
from slimwise.benchmarks.few_shot import conversation, num_shots
from slimwise.benchmarks.settings import USUAL, DataSettings, GradingLimits

TEST = DataSource(
    dataset="evalplus/mbppplus",
    revision="b2d74c91837c3f2a20c1299ae98133cbe7cfa077",
    split="test",
    local="mbppplus/MbppPlus-OriginFmt.jsonl",
    num_rows=378,
    columns=("task_id", "prompt", "code", "test_list", "test"),
)


@dataclass(frozen=True)
class MbppPlus:
    """Tasks in their published order, without shots."""

    settings: DataSettings = USUAL

    @property
    def name(self) -> str:
        return "mbpp_plus"

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
        """Verdicts by all tests, base and added; findings by the assertions that lm-eval reads."""
        return program_grader(references, limits)


def _item(row: Row) -> BenchmarkItem:
    task_id = f"Mbpp/{row['task_id']}"
    first = row["test_list"][0]
    question = f"{row['prompt']} Your code should satisfy the following assertion:\n{first}"
    reference = {
        "task_id": task_id,
        "entry_point": tested_function(row["test"]),
        "preamble": "",
        "canonical_solution": row["code"],
        "test": row["test"],
        "assertions": list(row["test_list"]),
    }
    return BenchmarkItem(task_id, conversation([], question), reference)
