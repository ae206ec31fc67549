"""Files and functions short enough to be read at once."""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
LONGEST_FILE = 400
LONGEST_FUNCTION = 40


def test_files_and_functions_are_short():
    paths = [*SOURCE.glob("**/*.py"), SOURCE.parent / "workflow" / "launch.py"]
    too_long = [
        f"{path}{excess}" for path in sorted(paths) for excess in excesses(path.read_text())
    ]
    assert not too_long, "\n".join(too_long)


def test_what_is_too_long_is_found():
    body = "    pass\n" * LONGEST_FUNCTION
    assert list(excesses(f"def f():\n{body}")) == [": f has 41 lines, 40 at most"]
    assert list(excesses("x = 1\n" * 401)) == [": 401 lines, 400 at most"]


def excesses(source: str) -> Iterator[str]:
    num_lines = len(source.splitlines())
    if num_lines > LONGEST_FILE:
        yield f": {num_lines} lines, {LONGEST_FILE} at most"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            num_lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if num_lines > LONGEST_FUNCTION:
                yield f": {node.name} has {num_lines} lines, {LONGEST_FUNCTION} at most"
