"""Rows of public data sets as conversations that a chat template takes.

A reader raises KeyError, TypeError or ValueError on a row that is not of its data set's form.
"""

from typing import Any

from slimwise.artifacts.chat_row import (
    Conversation,
    Row,
    decoded,
    text_message,
    tool_call,
    turn_message,
)


def instruction_and_output(row: Row) -> Conversation:
    """One turn of an instruction and its answer."""
    return Conversation(
        [text_message("user", row["instruction"]), text_message("assistant", row["output"])]
    )


def chat(row: Row) -> Conversation:
    """Messages with a role and a content each."""
    return Conversation([text_message(turn["role"], turn["content"]) for turn in row["messages"]])


def function_calls(row: Row) -> Conversation:
    """A query that the assistant answers by calling some of the tools; lists travel as JSON."""
    calls = [tool_call(answer) for answer in decoded(row["answers"])]
    answer = {**text_message("assistant", ""), "tool_calls": calls}
    tools = [_function(tool) for tool in decoded(row["tools"])]
    return Conversation([text_message("user", row["query"]), answer], tools)


def agent_trajectory(row: Row) -> Conversation:
    """An agent's turns with its tools, whose definitions the data set does not hold."""
    messages = [turn_message(turn) for turn in decoded(row["messages"])]
    return Conversation(messages, [_function(tool) for tool in _AGENT_TOOLS])


def _function(tool: Row) -> dict[str, Any]:
    described = {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "parameters": {"type": "object", "properties": dict(tool.get("parameters") or {})},
    }
    return {"type": "function", "function": described}


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
