"""What a benchmark is: items to ask, each with the reference that grades its answer."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.settings import GradingLimits


@dataclass(frozen=True)
class ToolCall:
    """A call as the server read it; arguments is JSON text, whatever the decoder wrote."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Answer:
    """What a decoder said after its thought, without the calls that the server took out of it."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class BenchmarkItem:
    """One conversation to continue; item_id is stable however many items are asked.

    tools are JSON function schemas as the OpenAI chat API takes them; the reference is plain JSON.
    native_calls asks for calls in the decoder's own form, which the server reads.
    """

    item_id: str
    messages: tuple[Mapping[str, Any], ...]
    reference: Mapping[str, Any]
    tools: tuple[Mapping[str, Any], ...] = ()
    native_calls: bool = False


Grade = Callable[[Answer, Mapping[str, Any]], Verdict]
"""The verdict on an answer that ended within the budget, by its item's reference."""


class Benchmark(Protocol):
    """A named set of items, the same for every decoder."""

    @property
    def name(self) -> str:
        """The name in configuration and tables."""
        ...

    def items(self, count: int) -> list[BenchmarkItem]:
        """The first count items, or all if the benchmark has fewer."""
        ...

    def origin(self) -> str:
        """Where the items come from, with revision and digest; "" if they are made here."""
        ...

    def grader(
        self, references: Sequence[Mapping[str, Any]], limits: GradingLimits
    ) -> AbstractContextManager[Grade]:
        """A grader, which several threads may call, of answers to the items with the references.

        GradingError if it cannot be trusted on this machine.
        """
        ...
