"""Where training sequences come from."""

import random
from typing import Any, Protocol

from slimwise.backbones.mini.chat import draw_rendered
from slimwise.backbones.mini.tasks.registry import PRACTISED
from slimwise.distill.config import DistillationConfig


class SequenceSource(Protocol):
    """Draws token sequences; equal generator states give equal sequences."""

    def draw(self, rng: random.Random) -> list[int]:
        """Token ids of one sequence, at most max_sequence_tokens."""
        ...


class MiniTasks:
    """The miniature's graded tasks as practised, prompt and response, each equally often."""

    def __init__(self, tokenizer: Any, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._max_tokens = max_tokens

    def draw(self, rng: random.Random) -> list[int]:
        family = PRACTISED[rng.choice(tuple(PRACTISED))]
        prompt, response = draw_rendered(self._tokenizer, family, rng, self._max_tokens)
        return [*prompt, *response]


def sequence_source(config: DistillationConfig, tokenizer: Any) -> SequenceSource:
    """The source that the configuration names."""
    match config.dataset:
        case "mini_tasks":
            return MiniTasks(tokenizer, config.max_sequence_tokens)
        case "chat_mixture":
            # Here, so that the miniature is distilled where the datasets package is missing.
            from slimwise.distill.chat_mixture import ChatMixture

            return ChatMixture(config, tokenizer)
