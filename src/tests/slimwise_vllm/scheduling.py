"""What a scheduler may do to requests, for engines of any kind of pool."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

TOLERANCE = 1e-4
"""float32, four layers: batches of another size sum in another order."""
BLOCK_TOKENS = 32
"""The smallest that vLLM's CPU attention takes."""


def scheduler(engine: Any) -> Any:
    return engine.llm_engine.engine_core.engine_core.scheduler


def assert_same(found: Sequence[Any], wanted: Sequence[Any]) -> None:
    assert [turn.answer for turn in found] == [turn.answer for turn in wanted]
    for left, right in zip(found, wanted, strict=True):
        assert left.logprobs == pytest.approx(right.logprobs, abs=TOLERANCE)


def preempted_turns(engine: Any, ask: Any, prompts: Any, parameters: Any, monkeypatch: Any) -> Any:
    """Turns of an engine without room for all the prompts, which must take some answers back."""
    preempted = []
    preempt = scheduler(engine)._preempt_request

    def counted(request, *args, **kwargs):
        preempted.append(request.num_output_tokens)
        return preempt(request, *args, **kwargs)

    monkeypatch.setattr(scheduler(engine), "_preempt_request", counted)
    turns = ask(engine, prompts, parameters)
    assert max(preempted) > 0
    return turns


def second_turn(
    engine: Any, ask: Any, sampling: Any, prompt: Any, choices: Sequence[Mapping[str, str]]
) -> Any:
    """The second turn of a conversation, whose two turns make these choices of pools."""
    (first,) = ask(engine, [prompt], sampling(40, **choices[0]))
    (second,) = ask(engine, [[*prompt, *first.answer, 7, 8, 9]], sampling(**choices[1]))
    return second
