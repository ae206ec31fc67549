"""The AST checker of the leaderboard, from bfcl-eval, without the model clients around it."""

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

from slimwise.benchmarks.tool_calls.categories import Language
from slimwise.errors import GradingError

Call = Mapping[str, Mapping[str, Any]]
"""A call as the checker takes it: arguments by the function's name."""

VERSION = "2026.3.23"
_MODEL = "slimwise"
_CLIENTS = "bfcl_eval.constants.model_config"


class Checked(NamedTuple):
    """The official verdict, and the official name of the error if it is wrong."""

    correct: bool
    error: str


def data_folder() -> Path:
    """Where bfcl-eval keeps the data set; GradingError if it is not installed."""
    return Path(_package().__path__[0]) / "data"


def check_calls(
    functions: Sequence[Mapping[str, Any]],
    calls: Sequence[Call],
    possible: Sequence[Mapping[str, Any]],
    *,
    language: Language,
    category: str,
) -> Checked:
    """Whether the calls are among the possible ones, functions as the data set describes them."""
    from bfcl_eval.constants import enums

    checker = load_checker()
    official = enums.Language[language.name]
    try:
        result = checker(functions, calls, possible, official, category, _MODEL)
    except Exception as failure:
        # The checker trusts what it is given: odd arguments break it in many ways.
        return Checked(False, f"checker: {type(failure).__name__}: {failure}"[:200])
    return Checked(result["valid"], "" if result["valid"] else result["error_type"])


@functools.cache
def load_checker() -> Callable[..., dict[str, Any]]:
    """The function, to be loaded before threads use it; GradingError if it is not installed.

    It reads one flag of a table whose module would import every vendor's client.
    """
    _package()
    clients = ModuleType(_CLIENTS)
    # Names are sent with underscores for dots; the flag makes the checker expect them so.
    table = {_MODEL: SimpleNamespace(underscore_to_dot=True)}
    clients.MODEL_CONFIG_MAPPING = table  # pyright: ignore[reportAttributeAccessIssue]
    sys.modules[_CLIENTS] = clients
    try:
        from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker
    finally:
        del sys.modules[_CLIENTS]
    return ast_checker


def _package() -> ModuleType:
    try:
        import bfcl_eval
    except ImportError as failure:
        raise GradingError(
            "bfcl-eval is not installed, which brings BFCL's items and grader. Install it without "
            f"its dependencies: pip install --no-deps bfcl-eval=={VERSION}."
        ) from failure
    return bfcl_eval
