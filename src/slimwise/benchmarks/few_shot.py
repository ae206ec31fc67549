"""Solved examples before a question, as turns of one conversation."""

from collections.abc import Iterable, Mapping
from typing import Any

from slimwise.benchmarks.settings import DataSettings
from slimwise.errors import ConfigError


def conversation(shots: Iterable[tuple[str, str]], question: str) -> tuple[Mapping[str, Any], ...]:
    """Each shot's question and answer as two turns, then the question; lm-eval's form for chat."""
    turns = [
        turn
        for asked, answered in shots
        for turn in (
            {"role": "user", "content": asked},
            {"role": "assistant", "content": answered},
        )
    ]
    return (*turns, {"role": "user", "content": question})


def num_shots(benchmark: str, settings: DataSettings, *, default: int, limit: int) -> int:
    """How many shots precede an item; ConfigError if the benchmark has fewer than asked."""
    if settings.num_shots is None:
        return default
    if settings.num_shots > limit:
        raise ConfigError(
            f"evaluation.num_shots: {benchmark} has at most {limit} shots, not "
            f"{settings.num_shots}. Lower the number, or leave it out for {default}."
        )
    return settings.num_shots
