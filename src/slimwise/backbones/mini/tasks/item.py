"""What a task family of the miniature is: items with a worked response, and a grader."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class TaskItem:
    """One prompt with the response to imitate and the reference that grades an answer.

    response continues the opened thought: working, "</think>", then the answer. tools are
    JSON function schemas as the OpenAI chat API takes them.
    """

    prompt: str
    response: str
    reference: Mapping[str, Any]
    tools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Verdict:
    """Whether an answer is right, what was read from it, and why it failed if it did.

    findings are further yes-or-no results by name, such as the verdict of a second grader.
    """

    correct: bool
    extracted: str
    reason: str = ""
    findings: Mapping[str, bool] = field(default_factory=dict)


class TaskFamily(Protocol):
    """A generator of items that all ask for the same skill."""

    @property
    def name(self) -> str: ...

    def draw(self, rng: random.Random) -> TaskItem:
        """A fresh item; equal generator states give equal items."""
        ...

    def grade(self, answer: str, reference: Mapping[str, Any]) -> Verdict:
        """The verdict on the text after the thought."""
        ...
