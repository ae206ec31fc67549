"""Conversations: the six data sets of the REAP mixture, or those of a local folder."""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from jinja2 import TemplateError

from slimwise.artifacts.chat_row import DATA_FORMATS, Conversation, conversation
from slimwise.calibrate import conversations
from slimwise.calibrate.config import CalibrationConfig
from slimwise.errors import ConfigError

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Component:
    """Where a component's rows lie on the hub, unless a folder holds them, and how one is read."""

    dataset: str
    read: Callable[[Mapping[str, Any]], Conversation]
    subset: str | None = None
    split: str = "train"


_THOUGHTS = "open-r1/Mixture-of-Thoughts"
COMPONENTS: Mapping[str, Component] = MappingProxyType(
    {
        "evol_codealpaca": Component(
            "theblackcat102/evol-codealpaca-v1", conversations.instruction_and_output
        ),
        "xlam_function_calling": Component(
            "Salesforce/xlam-function-calling-60k", conversations.function_calls
        ),
        "thoughts_code": Component(_THOUGHTS, conversations.chat, subset="code"),
        "thoughts_math": Component(_THOUGHTS, conversations.chat, subset="math"),
        "thoughts_science": Component(_THOUGHTS, conversations.chat, subset="science"),
        "swe_smith": Component(
            "SWE-bench/SWE-smith-trajectories", conversations.agent_trajectory, split="tool"
        ),
    }
)


_CHATS = Component("a file of conversations", conversation)


def mixture_documents(
    config: CalibrationConfig, component: str, tokenizer: Any
) -> Iterator[list[int]]:
    """Token ids of the component's conversations under the chat template, in seeded order.

    ConfigError if the data cannot be had. Rows that are not of the data set's form, or that the
    template refuses, are left out and counted in the log.
    """
    source = _component(config, component)
    num_bad = 0
    for row in _rows(config, component).shuffle(seed=config.seed):
        try:
            chat = source.read(row)
            text = tokenizer.apply_chat_template(chat.messages, tools=chat.tools, tokenize=False)
        except (KeyError, TypeError, ValueError, TemplateError) as failure:
            num_bad += 1
            logger.warning("%s: %d rows so far left out: %r", component, num_bad, failure)
            continue
        yield tokenizer(text, add_special_tokens=False).input_ids


def _component(config: CalibrationConfig, name: str) -> Component:
    return _CHATS if config.dataset == "chats" else COMPONENTS[name]


def _rows(config: CalibrationConfig, component: str) -> Any:
    import datasets
    from datasets.exceptions import DatasetsError

    source = _component(config, component)
    try:
        if config.data_folder is None:
            return datasets.load_dataset(source.dataset, source.subset, split=source.split)
        path = _local_file(config, component)
        return datasets.load_dataset(DATA_FORMATS[path.suffix], data_files=str(path), split="train")
    # The hub's client and the readers of data files raise these for whatever they cannot get.
    except (OSError, ValueError, DatasetsError) as failure:
        raise ConfigError(
            f"calibration component {component} ({source.dataset}) cannot be loaded: {failure} "
            "Fetch it with network access (and after accepting its terms on the hub), or set "
            f"calibration.data_folder to a folder that holds {component}.jsonl or .parquet."
        ) from failure


def _local_file(config: CalibrationConfig, component: str) -> Path:
    found = [path for path in config.data_files() if path.stem == component]
    if len(found) != 1:
        raise ConfigError(
            f"calibration.data_folder = '{config.data_folder}' needs exactly one of "
            f"{', '.join(component + suffix for suffix in DATA_FORMATS)}; found {len(found)}."
        )
    return found[0]
