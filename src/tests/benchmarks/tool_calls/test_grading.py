import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from slimwise.benchmarks.base import Answer, BenchmarkItem, ToolCall
from slimwise.benchmarks.tool_calls.grading import LENIENT, UNDECODABLE, grade_calls
from slimwise.benchmarks.tool_calls.official import load_checker

AST = ("bfcl_v4_live_ast", "bfcl_v4_non_live_ast")
UNSOLVABLE = {
    "live_simple_106-63-0": "required arguments without a possible value",
    "live_simple_112-68-0": "required arguments without a possible value",
    "live_multiple_862-181-3": "the only possible call has an argument the function lacks",
    "live_multiple_964-207-0": "the only possible call lacks a required argument",
    "simple_java_36": "a number in a list of anything, which the checker reads as text",
    "simple_java_65": "a boolean in a list of anything, which the checker reads as text",
}
"""Items to which the official checker accepts no answer."""


def reference(kind: str, entries: str | None = None, *, category="simple_python", **possible):
    schema = {"type": kind} | ({"items": {"type": entries}} if entries else {})
    parameters = {"properties": dict.fromkeys(possible, schema), "required": list(possible)}
    return {
        "category": category,
        "functions": [{"name": "geo.area", "parameters": parameters}],
        "possible": [{"geo.area": possible}],
    }


def call(name: str = "geo_area", **arguments: Any) -> Answer:
    return Answer("", (ToolCall(name, json.dumps(arguments)),))


@pytest.mark.parametrize("benchmark", AST)
def test_gold_answers_are_right(items, gold_answer, benchmark):
    wrong = [
        item.item_id
        for item in items[benchmark]
        if not grade_calls(gold_answer(item), item.reference).correct
    ]
    assert set(wrong) == {item.item_id for item in items[benchmark]} & set(UNSOLVABLE)


@pytest.mark.parametrize("benchmark", AST)
def test_wrong_answers_are_wrong(items, gold_answer, benchmark):
    for item in items[benchmark]:
        for answer in mutations(gold_answer(item)):
            assert not grade_calls(answer, item.reference).correct, (item.item_id, answer)


def mutations(gold: Answer) -> Iterator[Answer]:
    """The gold calls with one fault each."""
    calls = gold.tool_calls
    yield Answer("I would call the function.")
    yield Answer("", calls[1:])
    yield Answer("", (*calls, calls[0]))
    yield Answer("", tuple(replace(each, name=f"{each.name}_2") for each in calls))
    for index, each in enumerate(calls):
        arguments = json.loads(each.arguments)
        changes = [{name: other_value(value)} for name, value in arguments.items()]
        for change in (*changes, {"no_such_argument": 1}):
            changed = replace(each, arguments=json.dumps(arguments | change))
            yield Answer("", (*calls[:index], changed, *calls[index + 1 :]))


def other_value(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1_000_003
        case str():
            return "something else"
        case list():
            return [*value, *value, "more"]
        case _:
            return {"more": 1}


def test_a_call_is_right_only_where_one_is_expected(items):
    for item in items["bfcl_v4_irrelevance"]:
        assert grade_calls(Answer("None of them can."), item.reference).correct
        assert not grade_calls(any_call(item), item.reference).correct
    for item in items["bfcl_v4_relevance"]:
        assert not grade_calls(Answer("None of them can."), item.reference).correct
        assert grade_calls(any_call(item), item.reference).correct


def any_call(item: BenchmarkItem) -> Answer:
    names = [tool["function"]["name"] for tool in item.tools] or ["f"]
    return Answer("", (ToolCall(names[0], "{}"),))


@pytest.mark.parametrize("arguments", ['{"x": ', "[1]", "", "[" * 100_000])
@pytest.mark.parametrize(
    ("category", "correct"), [("irrelevance", True), ("live_relevance", False), ("multiple", False)]
)
def test_a_call_that_cannot_be_read_is_none_and_is_counted(category, correct, arguments):
    item = {"category": category, "functions": [], "possible": []}
    verdict = grade_calls(Answer("", (ToolCall("f", arguments),)), item)
    assert verdict.correct is correct
    assert verdict.findings[UNDECODABLE]


@pytest.mark.parametrize("text", ["<tool_call>\n<function=f>\n<parameter=x", "", "\n\n"])
def test_a_call_that_the_server_left_in_the_text_or_dropped_is_counted(text):
    item = {"category": "irrelevance", "functions": [], "possible": []}
    verdict = grade_calls(Answer(text), item)
    assert verdict.correct
    assert verdict.findings[UNDECODABLE]
    assert not grade_calls(Answer("None can."), item).findings[UNDECODABLE]


def test_whole_numbers_in_an_array_of_floats_are_wrong_and_lenient():
    item = reference("array", "float", sides=[[3.0, 4.0]])
    assert grade_calls(call(sides=[3.0, 4.0]), item).correct
    verdict = grade_calls(call(sides=[3, 4]), item)
    assert not verdict.correct
    assert verdict.reason == "type_error:nested"
    assert verdict.findings[LENIENT]
    assert not grade_calls(call(sides=[3, 5]), item).findings[LENIENT]
    assert not grade_calls(call(sides=["3", 4]), item).findings[LENIENT]


def test_a_whole_number_is_a_float_and_no_float_is_whole():
    assert grade_calls(call(radius=3), reference("float", radius=[3.0])).correct
    verdict = grade_calls(call(count=3.0), reference("integer", count=[3]))
    assert not verdict.correct
    assert not verdict.findings[LENIENT]


def test_dotted_names_come_back_with_underscores():
    item = reference("integer", radius=[3])
    assert grade_calls(call("geo_area", radius=3), item).correct
    assert grade_calls(call("geo.area", radius=3), item).reason.endswith("wrong_func_name")


def test_arguments_that_break_the_checker_are_wrong():
    item = reference("dict", shape=[{"sides": [3]}])
    item["functions"] = []
    verdict = grade_calls(call(shape={"sides": 3}), item)
    assert not verdict.correct
    assert verdict.reason.startswith("checker: IndexError")


def test_the_checker_leaves_no_stand_in_behind():
    import sys

    load_checker()
    assert "bfcl_eval.constants.model_config" not in sys.modules
