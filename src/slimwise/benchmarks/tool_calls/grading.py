"""Grades tool calls as the leaderboard does, with a lenient verdict beside the official one."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.base import Answer
from slimwise.benchmarks.tool_calls.categories import CATEGORIES, Expects
from slimwise.benchmarks.tool_calls.official import Call, Checked, check_calls

LENIENT, UNDECODABLE = "lenient", "undecodable"
"""Findings: right if whole numbers in arrays may stand for floats; not readable as call or text."""

_CALL_MARKS = ("<tool_call>", "<|tool_call", "<function=")
"""How families open calls: in the text after parsing, one that could not be read."""
_ARRAYS = ("array", "tuple")


def grade_calls(answer: Answer, reference: Mapping[str, Any]) -> Verdict:
    """The official verdict; a call that cannot be read is none, as on the leaderboard."""
    extracted = json.dumps([[call.name, call.arguments] for call in answer.tool_calls])
    calls = _decoded(answer)
    strict, lenient = _verdicts(calls, reference)
    findings = {LENIENT: lenient.correct, UNDECODABLE: _is_undecodable(calls, answer.text)}
    return Verdict(strict.correct, extracted, strict.error, findings)


def _verdicts(
    calls: Sequence[Call] | None, reference: Mapping[str, Any]
) -> tuple[Checked, Checked]:
    """The official verdict and the lenient one."""
    match CATEGORIES[reference["category"]].expects:
        case Expects.NO_CALL:
            verdict = Checked(not calls, "a call where no function fits" if calls else "")
            return verdict, verdict
        case Expects.CALLS if calls:
            strict = _checked(calls, reference)
            if strict.correct:
                return strict, strict
            return strict, _checked(_with_floats(calls, reference["functions"]), reference)
        case _:
            error = "a call cannot be read" if calls is None else "no tool call"
            verdict = Checked(bool(calls), "" if calls else error)
            return verdict, verdict


def _decoded(answer: Answer) -> list[Call] | None:
    """The calls with their arguments read; None if those of one are no JSON object."""
    decoded = []
    for call in answer.tool_calls:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return None
        if not isinstance(arguments, dict):
            return None
        decoded.append({call.name: arguments})
    return decoded


def _is_undecodable(calls: Sequence[Call] | None, text: str) -> bool:
    if calls is None or any(mark in text for mark in _CALL_MARKS):
        return True
    # vLLM's parsers also drop what opens like a call and is none, and then nothing is left.
    return not calls and not text.strip()


def _checked(calls: Sequence[Call], reference: Mapping[str, Any]) -> Checked:
    return check_calls(
        reference["functions"],
        calls,
        reference["possible"],
        language=CATEGORIES[reference["category"]].language,
        category=reference["category"],
    )


def _with_floats(calls: Sequence[Call], functions: Sequence[Mapping[str, Any]]) -> list[Call]:
    """The calls with whole numbers as floats in arrays of floats.

    The checker takes 3 for a float argument, but not [3] for an array of them.
    """
    wanted = {
        (function["name"].replace(".", "_"), name)
        for function in functions
        for name, schema in function["parameters"]["properties"].items()
        if schema["type"] in _ARRAYS and schema["items"]["type"] == "float"
    }
    return [
        {
            function: {
                name: _floats(value) if (function, name) in wanted else value
                for name, value in arguments.items()
            }
        }
        for call in calls
        for function, arguments in call.items()
    ]


def _floats(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return [float(entry) if type(entry) is int else entry for entry in value]
