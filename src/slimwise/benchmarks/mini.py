"""The miniature's task families as benchmarks: items that training never sees."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slimwise.backbones.mini.chat import messages
from slimwise.backbones.mini.tasks.item import TaskFamily, Verdict
from slimwise.backbones.mini.tasks.split import Split, draw_items
from slimwise.benchmarks.base import Answer, BenchmarkItem

_DRAW_SEED = 0  # part of a benchmark's identity: item 7 is the same in every study


@dataclass(frozen=True)
class MiniBenchmark:
    """Test items of one family, numbered in the order they are drawn."""

    family: TaskFamily

    @property
    def name(self) -> str:
        return f"mini_{self.family.name}"

    def items(self, count: int) -> list[BenchmarkItem]:
        """The first count items; there is no last one."""
        drawn = draw_items(self.family, count, _DRAW_SEED, Split.TEST)
        return [
            BenchmarkItem(str(index), tuple(messages(item)), item.reference, item.tools)
            for index, item in enumerate(drawn)
        ]

    def grade(self, answer: Answer, reference: Mapping[str, Any]) -> Verdict:
        """The family's verdict; its calls are text."""
        return self.family.grade(answer.text, reference)
