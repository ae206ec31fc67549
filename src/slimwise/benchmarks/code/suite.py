"""Reads the tests of HumanEval+ and MBPP+ as data, so that none of their code runs in the grader.

Each test file assigns `inputs` and `results` (or has a `ref_func` that gives the results), then
asserts item by item. Only the literals are read; the few kinds of assertion are told by name.
"""

import ast
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

_NUMBERS = {"inf": math.inf, "nan": math.nan}


class Comparison(StrEnum):
    """How a suite compares an output with the expected one."""

    EQUAL = "equal"
    AS_SETS = "as_sets"
    FOUND = "found"  # a match object, or whether there is one
    UNSOUND = "unsound"  # HumanEval/32: the assertion fails for every solution


@dataclass(frozen=True)
class Tests:
    """Inputs as a literal, and the expected outputs, or the source of a function giving them."""

    inputs: str
    expected: tuple[Any, ...] | None
    reference_source: str
    tolerance: float
    comparison: Comparison


def read_tests(test: str) -> Tests:
    """The tests in a test file of either suite."""
    tree = ast.parse(test)
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    body = functions["check"].body if "check" in functions else tree.body
    values = {
        node.targets[0].id: node.value
        for node in body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    results = values.get("results")
    inputs = ast.get_source_segment(test, values["inputs"])
    assert inputs is not None
    return Tests(
        inputs=inputs,
        expected=None if results is None else tuple(_literal(results)),
        reference_source=_reference_source(tree),
        tolerance=_tolerance(body),
        comparison=_comparison(functions),
    )


def tested_function(test: str) -> str:
    """Name of the function whose outputs a test file of MBPP+ asserts on."""
    for node in ast.walk(ast.parse(test)):
        match node:
            case ast.Call(
                func=ast.Name(id="assertion"), args=[ast.Call(func=ast.Name(id=name)), *_]
            ):
                return name
    raise AssertionError("a test file without assertions")


def _literal(node: ast.expr) -> Any:
    """A literal's value; inf and nan count as literals."""
    match node:
        case ast.Name(id=name) if name in _NUMBERS:
            return _NUMBERS[name]
        case ast.List(elts=items):
            return [_literal(item) for item in items]
        case ast.Tuple(elts=items):
            return tuple(_literal(item) for item in items)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_literal(operand)
    return ast.literal_eval(node)


def _reference_source(tree: ast.Module) -> str:
    kept = (ast.FunctionDef, ast.Import, ast.ImportFrom)
    defined = [node for node in tree.body if isinstance(node, kept)]
    return "\n".join(ast.unparse(node) for node in defined if _name(node) != "check")


def _name(node: ast.stmt) -> str:
    return node.name if isinstance(node, ast.FunctionDef) else ""


def _tolerance(body: list[ast.stmt]) -> float:
    for node in ast.walk(ast.Module(body, [])):
        match node:
            case ast.Call(func=ast.Name(id="assertion"), args=[_, _, ast.Constant(value=limit)]):
                return float(str(limit))
    return 0.0


def _comparison(functions: dict[str, ast.FunctionDef]) -> Comparison:
    if "assertion" not in functions:
        return Comparison.UNSOUND
    source = ast.unparse(functions["assertion"])
    if "set(out)" in source:
        return Comparison.AS_SETS
    return Comparison.FOUND if "out is not None" in source else Comparison.EQUAL
