"""Calls that the data set accepts, written as a decoder would."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from slimwise.benchmarks.base import Answer, BenchmarkItem, ToolCall
from slimwise.benchmarks.settings import DataSettings
from slimwise.benchmarks.tool_calls.benchmark import Bfcl
from slimwise.benchmarks.tool_calls.categories import CATEGORIES, MEANS, Language

OPTIONAL = ""
"""Among the possible values: the argument may be left out."""


def _gold_answer(item: BenchmarkItem) -> Answer:
    """The first possible calls, with no more arguments than needed."""
    functions = {each["name"]: each["parameters"] for each in item.reference["functions"]}
    language = CATEGORIES[item.reference["category"]].language
    calls = []
    for possible in item.reference["possible"]:
        ((name, values),) = possible.items()
        parameters = functions[name]
        arguments = {
            key: _written(_first(options), parameters["properties"].get(key, {}), language)
            for key, options in values.items()
            if OPTIONAL not in options or key in parameters["required"]
        }
        calls.append(ToolCall(name.replace(".", "_"), json.dumps(arguments)))
    return Answer("", tuple(calls))


def _first(options: Sequence[Any]) -> Any:
    value = next((option for option in options if option != OPTIONAL), OPTIONAL)
    if isinstance(value, dict):
        return _first_entries(value)
    if isinstance(value, list) and value and all(isinstance(entry, dict) for entry in value):
        return [_first_entries(entry) for entry in value]
    return value


def _first_entries(entries: Mapping[str, Any]) -> dict[str, Any]:
    # Entries have options like arguments, but in some Java items a plain value.
    return {
        key: options[0] if isinstance(options, list) else options
        for key, options in entries.items()
        if OPTIONAL not in options
    }


def _written(value: Any, schema: Mapping[str, Any], language: Language) -> Any:
    if language is Language.PYTHON:
        return value
    write = _in_java if language is Language.JAVA else _in_javascript
    return write(value, schema["type"], schema.get("items", {}).get("type"))


def _in_java(value: Any, kind: str, entries: str | None) -> str:
    if isinstance(value, list):
        texts = ", ".join(_in_java(entry, entries or "any", None) for entry in value)
        quoted = ", ".join(json.dumps(entry) for entry in value)
        if kind == "ArrayList":
            return f"new ArrayList<>(Arrays.asList({quoted if entries == 'String' else texts}))"
        return f"new {entries}[]{{{texts}}}"
    if isinstance(value, dict):
        puts = " ".join(f'put("{key}", {json.dumps(entry)});' for key, entry in value.items())
        return f"new HashMap<>() {{{{ {puts} }}}}"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value}{ {'long': 'L', 'float': 'f'}.get(kind, '') }".strip()


def _in_javascript(value: Any, kind: str, entries: str | None) -> str:
    if isinstance(value, str):
        return value
    if kind == "Bigint":
        return f"{value}n"
    return json.dumps(value)


@pytest.fixture(scope="session")
def items() -> Mapping[str, Sequence[BenchmarkItem]]:
    """All items by benchmark."""
    return {name: Bfcl(name, DataSettings()).items(10**6) for name in MEANS}


@pytest.fixture(scope="session")
def gold_answer() -> Callable[[BenchmarkItem], Answer]:
    return _gold_answer
