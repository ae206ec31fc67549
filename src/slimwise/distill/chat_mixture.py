"""Chats of open-perfectblend, APIGen-MT or a folder, as the model's own template writes them."""

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import datasets
from torch.utils.data import ConcatDataset

from slimwise.artifacts.chat_row import DATA_FORMATS, conversation, folder_files
from slimwise.distill.config import DistillationConfig
from slimwise.errors import ConfigError

Row = Mapping[str, Any]

_MAX_DRAWS = 1000


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
    ConfigError if it has neither as it should.
    """
    try:
        if "messages" in row:
            chat = conversation(row)
            messages, tools = chat.messages, chat.tools
        else:
            messages, tools = row_messages(row), _tools(row)
    except (KeyError, TypeError, ValueError) as failure:
        raise ConfigError(
            f"a row with the keys {', '.join(row)} is no conversation: {failure!r}. Give rows of "
            "messages with a role and a content each, or leave that row out."
        ) from failure
    return tokenizer.apply_chat_template(messages, tools=tools, tokenize=True, return_dict=False)


def row_messages(row: Row) -> list[dict[str, Any]]:
    """The row's turns as chat messages; a function_call turn becomes a tool call.

    ConfigError names a speaker that neither data set has.
    """
    system = [{"role": "system", "content": row["system"]}] if row.get("system") else []
    return system + [_message(turn) for turn in row["conversations"]]


def _message(turn: Mapping[str, str]) -> dict[str, Any]:
    content = turn["value"]
    match turn["from"]:
        case "system":
            return {"role": "system", "content": content}
        case "human" | "user":
            return {"role": "user", "content": content}
        case "gpt" | "assistant":
            return {"role": "assistant", "content": content}
        case "observation":
            return {"role": "tool", "content": content}
        case "function_call":
            call = {"type": "function", "function": json.loads(content)}
            return {"role": "assistant", "content": "", "tool_calls": [call]}
        case speaker:
            raise ConfigError(
                f"a conversation has a turn from {speaker!r}; known are system, human, gpt, "
                "function_call and observation. Convert the data set to those."
            )


def _tools(row: Row) -> Sequence[Mapping[str, Any]] | None:
    tools = row.get("tools")
    if not tools:
        return None
    described = json.loads(tools) if isinstance(tools, str) else list(tools)
    return [tool if "function" in tool else {"type": "function", "function": tool}
            for tool in described]  # fmt: skip
