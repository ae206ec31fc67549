"""Tools: requests to be answered by one or two calls of the offered functions, graded by AST."""

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from slimwise.backbones.mini.tasks.item import TaskItem, Verdict
from slimwise.backbones.mini.tasks.tool_catalogue import CATALOGUE, Tool

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_SECOND_CALL_SHARE = 0.3


class ToolsFamily:
    """Two to four functions are offered; parameter names change, so they must be read."""

    name = "tools"

    def draw(self, rng: random.Random) -> TaskItem:
        num_calls = 2 if rng.random() < _SECOND_CALL_SHARE else 1
        offered = rng.sample(CATALOGUE, rng.randint(2, 4))
        names = {tool.name: [rng.choice(p.names) for p in tool.parameters] for tool in offered}
        requests, calls = [], []
        for tool in rng.sample(offered, num_calls):
            values = [parameter.draw(rng) for parameter in tool.parameters]
            requests.append(tool.request.format(*map(_spoken, values)))
            calls.append(
                {"name": tool.name, "arguments": dict(zip(names[tool.name], values, strict=True))}
            )
        thought = "\n".join(f"{call['name']} {', '.join(call['arguments'])}" for call in calls)
        answer = "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)
        return TaskItem(
            prompt=" ".join(requests),
            response=f"{thought}\n</think>\n\n{answer}",
            reference={"calls": calls},
            tools=tuple(_schema(tool, names[tool.name]) for tool in offered),
        )

    def grade(self, answer: str, reference: Mapping[str, Any]) -> Verdict:
        """Right if the calls, in any order, equal the expected ones, JSON types included."""
        blocks = _CALL.findall(answer)
        try:
            calls = [json.loads(block) for block in blocks]
        except (json.JSONDecodeError, RecursionError):
            return Verdict(False, "\n".join(blocks), "a call is not JSON")
        correct = _canonical(calls) == _canonical(reference["calls"])
        reason = "" if correct else "wrong calls" if calls else "no tool call"
        return Verdict(correct, json.dumps(calls), reason)


def _spoken(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _schema(tool: Tool, names: Sequence[str]) -> dict[str, Any]:
    """The function as the chat API describes it."""
    properties = {
        name: {"type": parameter.json_type}
        for name, parameter in zip(names, tool.parameters, strict=True)
    }
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": {"type": "object", "properties": properties, "required": list(names)},
        },
    }


def _canonical(calls: Sequence[Any]) -> list[str]:
    # JSON text keeps true and 1, or 3 and 3.0, apart, which == does not.
    return sorted(json.dumps(call, sort_keys=True) for call in calls)
