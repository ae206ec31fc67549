"""BFCL v4's single-turn items, asked by native tool calls."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slimwise.benchmarks.base import BenchmarkItem, Grade
from slimwise.benchmarks.data import DataRows, DataSource, Row, read_data
from slimwise.benchmarks.few_shot import num_shots
from slimwise.benchmarks.settings import DataSettings, GradingLimits
from slimwise.benchmarks.tool_calls.categories import (
    CATEGORIES,
    MEANS,
    Expects,
    category_of,
    members,
)
from slimwise.benchmarks.tool_calls.grading import grade_calls
from slimwise.benchmarks.tool_calls.official import VERSION, data_folder, load_checker
from slimwise.benchmarks.tool_calls.schemas import chat_tool

_FOLDER = "bfcl_v4"


@dataclass(frozen=True)
class Bfcl:
    """The categories that one published mean is over; the data come with bfcl-eval.

    References hold the possible calls, and of the functions what the checker reads.
    """

    name: str
    settings: DataSettings

    def items(self, count: int) -> list[BenchmarkItem]:
        """The first count items; any number of them mixes the categories as all do."""
        num_shots(self.name, self.settings, default=0, limit=0)
        placed = [
            ((number + 0.5) / len(items), item)
            for category in members(MEANS[self.name])
            for items in [self._items(category)]
            for number, item in enumerate(items)
        ]
        placed.sort(key=lambda pair: pair[0])
        return [item for _, item in placed[:count]]

    def origin(self) -> str:
        """The package that published the items, with the digest of each category's."""
        digests = [
            f"{category} sha256:{self._prompts(category).sha256}"
            for category in members(MEANS[self.name])
        ]
        return f"bfcl-eval {VERSION}: {', '.join(digests)}"

    @contextmanager
    def grader(
        self, references: Sequence[Mapping[str, Any]], limits: GradingLimits
    ) -> Iterator[Grade]:
        """Verdicts by the official checker."""
        load_checker()
        yield grade_calls

    def _items(self, category: str) -> list[BenchmarkItem]:
        prompts = self._prompts(category).rows
        if CATEGORIES[category].expects is not Expects.CALLS:
            return [_item(prompt, ()) for prompt in prompts]
        answers = self._read(category, f"possible_answer/{_file(category)}", "ground_truth").rows
        return [
            _item(prompt, answer["ground_truth"])
            for prompt, answer in zip(prompts, answers, strict=True)
        ]

    def _prompts(self, category: str) -> DataRows:
        return self._read(category, _file(category), "question", "function")

    def _read(self, category: str, name: str, *columns: str) -> DataRows:
        source = DataSource(
            dataset="bfcl-eval",
            revision=VERSION,
            split=category,
            local=name,
            num_rows=CATEGORIES[category].num_items,
            columns=("id", *columns),
        )
        return read_data(source, self._folder())

    def _folder(self) -> Path:
        folder = self.settings.folder
        return data_folder() if folder is None else folder / _FOLDER


def _file(category: str) -> str:
    return f"BFCL_v4_{category}.json"


def _item(prompt: Row, possible: Sequence[Mapping[str, Any]]) -> BenchmarkItem:
    (messages,) = prompt["question"]  # a list of turns, of which these items have one
    category = category_of(prompt["id"])
    language = CATEGORIES[category].language
    functions = prompt["function"]
    return BenchmarkItem(
        item_id=prompt["id"],
        messages=tuple(messages),
        reference={
            "category": category,
            "functions": [_signature(each) for each in functions if possible],
            "possible": list(possible),
        },
        tools=tuple(chat_tool(each, language) for each in functions),
        native_calls=True,
    )


def _signature(function: Mapping[str, Any]) -> dict[str, Any]:
    """The function without what only a decoder reads."""
    parameters = function["parameters"]
    properties = {
        name: {"type": schema["type"]}
        | ({"items": {"type": schema["items"]["type"]}} if "items" in schema else {})
        for name, schema in parameters["properties"].items()
    }
    return {
        "name": function["name"],
        "parameters": {"properties": properties, "required": parameters["required"]},
    }
