"""The token sequences that calibration observes, component by component."""

import logging
from typing import Any

from slimwise.backbones.mini.chat import render
from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.backbones.mini.tasks.split import Split, draw_items
from slimwise.calibrate.config import CalibrationConfig
from slimwise.errors import ConfigError

logger = logging.getLogger(__name__)


def component_sequences(
    config: CalibrationConfig, component: str, tokenizer: Any
) -> list[list[int]]:
    """Token ids of prompt and response, cut at max_sequence_tokens; exactly as many as asked.

    ConfigError if the mixture has no such component.
    """
    family = GRADED.get(component)
    if family is None:
        raise ConfigError(
            f"calibration.components: {component!r} is not in {config.dataset}. Choose among "
            f"{', '.join(GRADED)}."
        )
    items = draw_items(family, config.sequences_per_component, config.seed, Split.TRAIN)
    rendered = (render(tokenizer, item) for item in items)
    sequences = [[*prompt_ids, *response_ids] for prompt_ids, response_ids in rendered]
    num_cut = sum(len(sequence) > config.max_sequence_tokens for sequence in sequences)
    if num_cut:
        logger.info(
            "%s: %d of %d sequences cut at %d tokens",
            component,
            num_cut,
            len(sequences),
            config.max_sequence_tokens,
        )
    return [sequence[: config.max_sequence_tokens] for sequence in sequences]
