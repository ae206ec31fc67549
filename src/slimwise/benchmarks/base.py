"""What a benchmark is: items to ask, each with the reference that grades its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from slimwise.backbones.mini.tasks.item import Verdict


@dataclass(frozen=True)
class BenchmarkItem:
    """One conversation to continue; item_id is stable however many items are asked.

    tools are JSON function schemas as the OpenAI chat API takes them; the reference is plain JSON.
    """

    item_id: str
    messages: tuple[Mapping[str, Any], ...]
    reference: Mapping[str, Any]
    tools: tuple[Mapping[str, Any], ...] = ()


class Benchmark(Protocol):
    """A named set of items, the same for every decoder."""

    @property
    def name(self) -> str:
        """The name in configuration and tables."""
        ...

    def items(self, count: int) -> list[BenchmarkItem]:
        """The first count items, or all if the benchmark has fewer."""
        ...

    def grade(self, answer: str, reference: Mapping[str, Any]) -> Verdict:
        """The verdict on the text after the thought."""
        ...
