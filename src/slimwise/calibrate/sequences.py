"""The token sequences that calibration observes, component by component."""

import logging
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any

from slimwise.backbones.mini.chat import render
from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.backbones.mini.tasks.split import Split, draw_items
from slimwise.calibrate.config import CalibrationConfig
from slimwise.calibrate.mixture import COMPONENTS, mixture_documents
from slimwise.core.packing import packed
from slimwise.core.vocabulary import Packing
from slimwise.errors import ConfigError

logger = logging.getLogger(__name__)


def component_sequences(
    config: CalibrationConfig, component: str, tokenizer: Any
) -> list[Sequence[int]]:
    """Token ids of rows that do not see each other, of exactly as many sequences as asked.

    Rows are arrays of four bytes a token: every process of a host holds those of the whole mixture.
    Under isolated packing a sequence is several rows, one a document: positions, attention and
    recurrent states begin anew in each. ConfigError if the mixture has no such component, or holds
    fewer sequences and calibration.allow_short is not set.
    """
    documents = (array("I", ids) for ids in _documents(config, component, tokenizer))
    sequences = list(islice(_laid_out(documents, config), config.sequences_per_component))
    _check_count(len(sequences), config, component)
    rows = [row for sequence in sequences for row in sequence]
    logger.info(
        "%s: %d sequences, %d rows, %.3f M tokens (packing: %s)",
        component,
        len(sequences),
        len(rows),
        sum(map(len, rows)) / 1e6,
        config.packing,
    )
    return rows


def _documents(
    config: CalibrationConfig, component: str, tokenizer: Any
) -> Iterable[Sequence[int]]:
    known = GRADED if config.dataset == "mini_tasks" else COMPONENTS
    if config.dataset != "chats" and component not in known:
        raise ConfigError(
            f"calibration.components: {component!r} is not in {config.dataset}. Choose among "
            f"{', '.join(known)}."
        )
    if config.dataset == "mini_tasks":
        return _mini_documents(config, component, tokenizer)
    return mixture_documents(config, component, tokenizer)


def _mini_documents(
    config: CalibrationConfig, component: str, tokenizer: Any
) -> Iterator[Sequence[int]]:
    family, count = GRADED[component], config.sequences_per_component
    for item in draw_items(family, count, config.seed, Split.TRAIN):
        prompt_ids, response_ids = render(tokenizer, item)
        yield [*prompt_ids, *response_ids]


def _laid_out(
    documents: Iterable[Sequence[int]], config: CalibrationConfig
) -> Iterator[list[Sequence[int]]]:
    limit = config.max_sequence_tokens
    match config.packing:
        case Packing.NONE:
            return ([document[:limit]] for document in documents)
        case Packing.ISOLATED:
            return packed(documents, limit)
        case Packing.OPEN:
            return ([array("I", chain(*members))] for members in packed(documents, limit))


def _check_count(num_found: int, config: CalibrationConfig, component: str) -> None:
    asked = config.sequences_per_component
    if num_found == asked:
        return
    if num_found == 0 or not config.allow_short:
        remedy = "Ask for fewer, or set calibration.allow_short." if num_found else _remedy(config)
        raise ConfigError(
            f"calibration component {component} gives {num_found} sequences of "
            f"{config.max_sequence_tokens} tokens; calibration.sequences_per_component asks for "
            f"{asked}. {remedy}"
        )
    logger.warning("%s: %d of %d sequences (allow_short)", component, num_found, asked)


def _remedy(config: CalibrationConfig) -> str:
    """What to do where there is no sequence at all, which calibration.allow_short cannot mend."""
    if config.packing is Packing.NONE:
        return "No row of its data can be used (the log says why): mend them, or leave it out."
    return (
        "Give it more rows that can be used (the log counts others), lower "
        "calibration.max_sequence_tokens, or set calibration.packing to none."
    )
