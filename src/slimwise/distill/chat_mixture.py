"""Chats of open-perfectblend, APIGen-MT or a folder, as the model's own template writes them."""

import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import datasets
from jinja2 import TemplateError
from torch.utils.data import ConcatDataset

from slimwise.artifacts.chat_row import (
    DATA_FORMATS,
    Conversation,
    Row,
    conversation,
    decoded,
    folder_files,
    text_message,
    tool_call,
)
from slimwise.distill.config import DistillationConfig
from slimwise.errors import ConfigError

_MAX_DRAWS = 1000
_ROLES: Mapping[str, str] = MappingProxyType(
    {
        "system": "system",
        "human": "user",
        "user": "user",
        "gpt": "assistant",
        "assistant": "assistant",
        "observation": "tool",
    }
)
"""Of the chat API, by speaker of a turn of text."""


class ChatMixture:
    """Rows of both data sets, drawn with replacement; rows that are too long are drawn again."""

    def __init__(self, config: DistillationConfig, tokenizer: Any) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._chats = load_rows(config.chat_data)
        self._trajectories = load_rows(config.agent_data) if config.agent_share else ()

    def draw(self, rng: random.Random) -> list[int]:
        is_trajectory = rng.random() < self._config.agent_share
        rows = self._trajectories if is_trajectory else self._chats
        for _ in range(_MAX_DRAWS):
            ids = row_tokens(rows[rng.randrange(len(rows))], self._tokenizer)
            if 1 < len(ids) <= self._config.max_sequence_tokens:
                return ids
        source = self._config.agent_data if is_trajectory else self._config.chat_data
        raise ConfigError(
            f"{source}: {_MAX_DRAWS} rows drawn, all longer than max_sequence_tokens = "
            f"{self._config.max_sequence_tokens}. Raise distillation.max_sequence_tokens."
        )


def load_rows(source: str) -> Any:
    """The training rows of a hub data set, or of the data files in a local folder.

    ConfigError if there is no such data.
    """
    files = folder_files(source)
    try:
        if not files:
            return datasets.load_dataset(source, split="train")
        # One by one: files of one folder may differ in their columns.
        tables: list[Any] = [
            datasets.load_dataset(DATA_FORMATS[path.suffix], data_files=str(path), split="train")
            for path in files
        ]
        return ConcatDataset(tables)
    except Exception as failure:
        raise ConfigError(
            f"cannot load {source}: {failure}. Give distillation.chat_data and agent_data a hub id "
            "that can be reached, or a folder with .jsonl, .json or .parquet files."
        ) from failure


def row_tokens(row: Row, tokenizer: Any) -> list[int]:
    """Token ids of a row's conversation, with its tools where it has some.

    The row has messages, as the chat API does, or conversations, as both data sets do.
    ConfigError if it has neither as it should, or the model's chat template refuses it.
    """
    try:
        chat = conversation(row) if "messages" in row else _of_turns(row)
        return tokenizer.apply_chat_template(
            chat.messages, tools=chat.tools, tokenize=True, return_dict=False
        )
    except (KeyError, TypeError, ValueError, TemplateError) as failure:
        raise ConfigError(
            f"a row with the keys {', '.join(row)} is no conversation: {failure!r}. "
            "Give rows of messages with a role and a content each, in an order that its chat "
            "template takes, or leave that row out."
        ) from failure


def _of_turns(row: Row) -> Conversation:
    """The row's conversations as chat messages, and its tools, which may travel as JSON.

    ConfigError names a speaker that neither data set has.
    """
    system = [text_message("system", row["system"])] if row.get("system") else []
    tools = [
        tool if "function" in tool else {"type": "function", "function": tool}
        for tool in decoded(row.get("tools") or ())
    ]
    return Conversation(system + [_message(turn) for turn in row["conversations"]], tools or None)


def _message(turn: Row) -> dict[str, Any]:
    """The turn as a chat message; a function_call turn becomes a tool call."""
    speaker, content = turn["from"], turn["value"]
    if speaker == "function_call":
        return {**text_message("assistant", ""), "tool_calls": [tool_call(decoded(content))]}
    if speaker not in _ROLES:
        raise ConfigError(
            f"a conversation has a turn from {speaker!r}; known are function_call, "
            f"{', '.join(_ROLES)}. Convert the data set to those."
        )
    return text_message(_ROLES[speaker], content)
