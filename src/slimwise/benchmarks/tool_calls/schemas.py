"""Functions of the data set as the chat API takes them, with a hint at their language.

Both follow bfcl-eval's conversion for OpenAI-compatible servers, so that decoders read what they
read on the leaderboard.
"""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from slimwise.benchmarks.tool_calls.categories import Language

Schema = Mapping[str, Any]

_JSON_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "integer": "integer",
        "number": "number",
        "float": "number",
        "string": "string",
        "boolean": "boolean",
        "array": "array",
        "tuple": "array",
        "dict": "object",
        "object": "object",
        "any": "string",
    }
)
_FLOAT_HINT = " This is a float type value."
_IN_TEXT = "they are not in string representation."


def chat_tool(function: Schema, language: Language) -> dict[str, Any]:
    """The function as a tool; its name has underscores for dots, which the chat API refuses."""
    hinted = {
        name: schema if language is Language.PYTHON else _as_text(schema, language)
        for name, schema in function["parameters"]["properties"].items()
    }
    parameters = {
        **function["parameters"],
        "type": "object",
        "properties": {name: _json_schema(schema) for name, schema in hinted.items()},
    }
    described = {
        "name": function["name"].replace(".", "_"),
        "description": f"{function['description']} Note that the provided function is in "
        f"{language} syntax.",
        "parameters": parameters,
    }
    return {"type": "function", "function": {**function, **described}}


def _as_text(schema: Schema, language: Language) -> dict[str, Any]:
    """A parameter of another language, which is asked for as that language's source text."""
    word = "JavaScript" if language is Language.JAVASCRIPT else "Java"
    kind = schema["type"]
    hint = f" This is {word} {kind} type parameter in string representation."
    if kind == "any":
        hint = f" This parameter can be of any type of {word} object in string representation."
    asked = dict(schema)
    if kind in ("array", "Array", "ArrayList"):
        hint += f" The list elements are of type {asked.pop('items')['type']}; {_IN_TEXT}"
    if kind == "dict" and "properties" in asked:
        entries = json.dumps(asked.pop("properties"))
        hint += f" The dictionary entries have the following schema; {_IN_TEXT} {entries}"
    return {**asked, "type": "string", "description": schema["description"] + hint}


def _json_schema(schema: Schema) -> dict[str, Any]:
    """The same schema in JSON's words for types; unknown ones are strings."""
    cast: dict[str, Any] = {**schema, "type": _JSON_TYPES.get(schema.get("type", ""), "string")}
    if schema.get("type") == "float":
        cast |= {"format": "float", "description": schema["description"] + _FLOAT_HINT}
    if cast["type"] not in ("array", "object"):
        return cast
    if "properties" in schema:
        cast["properties"] = {name: _json_schema(p) for name, p in schema["properties"].items()}
    elif "items" in schema:
        cast["items"] = _items_schema(schema["items"])
    return cast


def _items_schema(schema: Schema) -> dict[str, Any]:
    cast: dict[str, Any] = {**schema, "type": _JSON_TYPES[schema["type"]]}
    if cast["type"] == "array" and "items" in schema:
        cast["items"] = {**schema["items"], "type": _JSON_TYPES[schema["items"]["type"]]}
    elif cast["type"] == "object" and "properties" in schema:
        cast["properties"] = {name: _json_schema(p) for name, p in schema["properties"].items()}
    return cast
