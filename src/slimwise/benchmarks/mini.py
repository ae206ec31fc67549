"""The miniature's task families as benchmarks: items that training never sees."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from slimwise.backbones.mini.chat import messages
from slimwise.backbones.mini.tasks.item import TaskFamily, Verdict
from slimwise.backbones.mini.tasks.split import Split, draw_items
from slimwise.benchmarks.base import Answer, BenchmarkItem, Grade
from slimwise.benchmarks.few_shot import num_shots
from slimwise.benchmarks.settings import USUAL, DataSettings, GradingLimits

_DRAW_SEED = 0  # part of a benchmark's identity: item 7 is the same in every study


@dataclass(frozen=True)
class MiniBenchmark:
    """Test items of one family, numbered in the order they are drawn."""

    family: TaskFamily
    settings: DataSettings = USUAL

    @property
    def name(self) -> str:
        return f"mini_{self.family.name}"

    def items(self, count: int) -> list[BenchmarkItem]:
        """The first count items; there is no last one."""
        num_shots(self.name, self.settings, default=0, limit=0)
        drawn = draw_items(self.family, count, _DRAW_SEED, Split.TEST)
        return [
            BenchmarkItem(str(index), tuple(messages(item)), item.reference, item.tools)
            for index, item in enumerate(drawn)
        ]

    def origin(self) -> str:
        """Nowhere: items are drawn."""
        return ""

    @contextmanager
    def grader(
        self, references: Sequence[Mapping[str, Any]], limits: GradingLimits
    ) -> Iterator[Grade]:
        """The family's verdicts, one at a time; its calls are text."""
        alone = threading.Lock()

        def grade(answer: Answer, reference: Mapping[str, Any]) -> Verdict:
            with alone:
                return self.family.grade(answer.text, reference)

        yield grade
