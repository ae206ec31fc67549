"""Runs a generated program outside this process and compares its outputs here."""

import ast
import atexit
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from slimwise.backbones.mini.tasks import program_worker

# Imported for its path, and so that digests of what is graded hold it.
_WORKER = program_worker.__file__
_FENCE = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)
_REFUSED_NODES = (ast.Import, ast.ImportFrom, ast.Global, ast.Nonlocal, ast.ClassDef, ast.Try)
_ALLOWED_METHODS = frozenset({"append", "extend", "index", "count", "fromkeys", "sort", "reverse"})


def last_program(answer: str, entry: str) -> str | None:
    """The last fenced block that defines the entry point, or None."""
    blocks = [block for block in _FENCE.findall(answer) if f"def {entry}(" in block]
    return blocks[-1] if blocks else None


def refusal(source: str) -> str:
    """Why the program is not run: bad syntax, or a construct no answer needs; else ""."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as failure:
        return f"syntax error: {failure}"[:200]
    for node in ast.walk(tree):
        if isinstance(node, _REFUSED_NODES):
            return f"refused construct {type(node).__name__}"
        if isinstance(node, ast.Attribute) and node.attr not in _ALLOWED_METHODS:
            return f"refused attribute {node.attr!r}"
        if isinstance(node, ast.Name) and node.id.startswith("__"):
            return f"refused name {node.id!r}"
    return ""


def run_program(source: str, entry: str, inputs: Sequence[Any]) -> tuple[list[Any] | None, str]:
    """(outputs per input, "") or (None, why it failed); limits: 1 s of CPU, 256 MiB, no files."""
    worker = _worker()
    assert worker.stdin is not None
    assert worker.stdout is not None
    request = {"source": source, "entry": entry, "inputs": list(inputs)}
    worker.stdin.write(json.dumps(request) + "\n")
    worker.stdin.flush()
    reply = json.loads(worker.stdout.readline())
    return reply.get("outputs"), reply.get("error", "")


@cache
def _worker() -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", _WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={},
    )
    atexit.register(process.kill)
    return process
