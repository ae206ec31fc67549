"""Rows of public data sets as conversations that a chat template takes.

A reader raises KeyError, TypeError or ValueError on a row that is not of its data set's form.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Conversation:
    """Messages and tool definitions, both as chat templates take them."""

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] | None = None


def instruction_and_output(row: Row) -> Conversation:
    """One turn of an instruction and its answer."""
    return Conversation(
        [_message("user", row["instruction"]), _message("assistant", row["output"])]
    )


def chat(row: Row) -> Conversation:
    """Messages with a role and a content each."""
    return Conversation([_message(turn["role"], turn["content"]) for turn in row["messages"]])


def function_calls(row: Row) -> Conversation:
    """A query that the assistant answers by calling some of the tools; lists travel as JSON."""
    calls = [_tool_call(answer) for answer in _decoded(row["answers"])]
    answer = {**_message("assistant", ""), "tool_calls": calls}
    tools = [_function(tool) for tool in _decoded(row["tools"])]
    return Conversation([_message("user", row["query"]), answer], tools)


def agent_trajectory(row: Row) -> Conversation:
    """An agent's turns with its tools, whose definitions the data set does not hold."""
    turns = _decoded(row["messages"])
    return Conversation([_agent_turn(turn) for turn in turns], [_function(t) for t in _AGENT_TOOLS])


def _agent_turn(turn: Row) -> dict[str, Any]:
    message = _message(turn["role"], _text(turn.get("content")))
    calls = [_tool_call(call["function"]) for call in turn.get("tool_calls") or ()]
    return {**message, "tool_calls": calls} if calls else message


def _message(role: str, content: str) -> dict[str, Any]:
    if not isinstance(role, str) or not isinstance(content, str):
        raise TypeError(f"a message of role {role!r} has content of {type(content).__name__}")
    return {"role": role, "content": content}


def _text(content: Any) -> str:
    """Plain text of a content that may be absent or a list of parts."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part.get("type") == "text")
    return content or ""


def _tool_call(function: Row) -> dict[str, Any]:
    # A mapping: templates that write arguments one by one refuse their JSON text.
    called = {"name": function["name"], "arguments": dict(_decoded(function["arguments"]))}
    return {"type": "function", "function": called}


def _function(tool: Row) -> dict[str, Any]:
    described = {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "parameters": {"type": "object", "properties": dict(tool.get("parameters") or {})},
    }
    return {"type": "function", "function": described}


def _decoded(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


_STRING = {"type": "string"}
_INTEGER = {"type": "integer"}
_AGENT_TOOLS: tuple[Row, ...] = (
    {
        "name": "bash",
        "description": "Run a command in the shell.",
        "parameters": {"command": _STRING},
    },
    {
        "name": "str_replace_editor",
        "description": "View, create and edit files.",
        "parameters": {
            "command": {
                **_STRING,
                "enum": ["view", "create", "str_replace", "insert", "undo_edit"],
            },
            "path": _STRING,
            "file_text": _STRING,
            "old_str": _STRING,
            "new_str": _STRING,
            "insert_line": _INTEGER,
            "view_range": {"type": "array", "items": _INTEGER},
        },
    },
    {"name": "submit", "description": "Hand in the work.", "parameters": {}},
)
