"""A row of chat data: the messages and tools of the chat API, as chat templates take them.

A reader raises KeyError, TypeError or ValueError on a row that is not of that form.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

Row = Mapping[str, Any]
DATA_FORMATS = MappingProxyType({".jsonl": "json", ".json": "json", ".parquet": "parquet"})
"""What the datasets library calls a file of that suffix."""


def folder_files(folder: str | Path, *, recursive: bool = False) -> list[Path]:
    """The data files in the folder, or anywhere below it; none if there is no such folder."""
    paths = sorted(Path(folder).expanduser().glob("**/*" if recursive else "*"))
    return [path for path in paths if path.suffix in DATA_FORMATS]


@dataclass(frozen=True)
class Conversation:
    """Messages and tool definitions, both as chat templates take them."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None


def conversation(row: Row) -> Conversation:
    """The row's messages, and its tools if it has any."""
    # Where rows differ in their keys, tables of rows have all keys in all rows.
    turns = [without_nulls(turn) for turn in row["messages"]]
    tools = [without_nulls(tool) for tool in decoded(row.get("tools")) or ()]
    return Conversation([turn_message(turn) for turn in turns], tools or None)


def turn_message(turn: Row) -> dict[str, Any]:
    """A turn with its text and its tool calls."""
    message = text_message(turn["role"], _text(turn.get("content")))
    calls = [tool_call(call["function"]) for call in turn.get("tool_calls") or ()]
    return {**message, "tool_calls": calls} if calls else message


def text_message(role: Any, content: Any) -> dict[str, Any]:
    """A turn of text; TypeError if role or content is anything else."""
    if not isinstance(role, str) or not isinstance(content, str):
        raise TypeError(f"a message of role {role!r} has content of {type(content).__name__}")
    return {"role": role, "content": content}


def tool_call(function: Row) -> dict[str, Any]:
    """A call of the function of that name and arguments."""
    # A mapping: templates that write arguments one by one refuse their JSON text.
    called = {"name": function["name"], "arguments": dict(decoded(function["arguments"]))}
    return {"type": "function", "function": called}


def decoded(value: Any) -> Any:
    """The value, or what it holds as JSON text."""
    return json.loads(value) if isinstance(value, str) else value


def without_nulls(value: Any) -> Any:
    """The value without keys of null, at any depth."""
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value)
        return {key: without_nulls(part) for key, part in parts.items() if part is not None}
    if isinstance(value, list):
        return [without_nulls(part) for part in cast("list[Any]", value)]
    return value


def _text(content: Any) -> str:
    """Plain text of a content that may be absent or a list of parts."""
    if isinstance(content, list):
        parts = cast("list[Row]", content)
        return "\n".join(part["text"] for part in parts if part.get("type") == "text")
    return content or ""
