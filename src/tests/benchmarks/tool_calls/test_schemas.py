import importlib
import sys
from unittest.mock import MagicMock

import pytest

from slimwise.benchmarks.tool_calls.categories import CATEGORIES, Language
from slimwise.benchmarks.tool_calls.schemas import chat_tool


@pytest.fixture
def official(monkeypatch, tmp_path):
    """bfcl-eval's own prompts and conversion, without the source-text parsers they import."""
    loaded = set(sys.modules)
    monkeypatch.setenv("BFCL_PROJECT_ROOT", str(tmp_path))  # it makes folders there
    for parser in ("tree_sitter", "tree_sitter_java", "tree_sitter_javascript"):
        monkeypatch.setitem(sys.modules, parser, MagicMock())
    yield (
        importlib.import_module("bfcl_eval.utils"),
        importlib.import_module("bfcl_eval.model_handler.utils"),
    )
    for name in set(sys.modules) - loaded:
        if name.startswith("bfcl_eval"):
            del sys.modules[name]


def test_decoders_read_what_the_leaderboard_shows_them(official, items):
    data, handler = official
    entries = {
        entry["id"]: entry for category in CATEGORIES for entry in data.load_dataset_entry(category)
    }
    asked = [item for group in items.values() for item in group]
    assert len(asked) == len(entries) == 3641
    for item in asked:
        entry = entries[item.item_id]
        assert list(item.messages) == entry["question"][0]
        assert list(item.tools) == handler.convert_to_tool(
            entry["function"], handler.GORILLA_TO_OPENAPI, handler.ModelStyle.OPENAI_COMPLETIONS
        )


def test_a_tool_keeps_its_schema_and_gets_a_hint():
    size = {"type": "float", "description": "Width."}
    function = {
        "name": "shop.order",
        "description": "Orders.",
        "parameters": {"type": "dict", "properties": {"size": size}, "required": ["size"]},
    }
    tool = chat_tool(function, Language.PYTHON)["function"]
    assert tool["name"] == "shop_order"
    assert tool["description"] == "Orders. Note that the provided function is in Python 3 syntax."
    assert tool["parameters"]["type"] == "object"
    assert tool["parameters"]["properties"]["size"] == {
        "type": "number",
        "format": "float",
        "description": "Width. This is a float type value.",
    }
    assert size == {"type": "float", "description": "Width."}
