"""Runs one generated program on its inputs; the inside of the sandbox, standard library only.

Started as `python -I -S candidate.py`: one JSON request on stdin, one JSON reply on stdout. The
process never learns what outputs are expected, so all it can forge are outputs of its own.
"""

import base64
import copy
import hashlib
import itertools
import json
import math
import os
import resource
import sys
from array import array
from typing import Any

_NOBODY = 65534
_PACKED = {float: "d", int: "q"}
_ROWS = (list, tuple)
_LONG = 64  # items; a list of a million numbers is packed, or its JSON would take a minute
_MANY = 50_000  # rows; Mbpp/255 returns two million tuples of 77, more than can be written down


def encoded(value: Any) -> list[Any]:
    """[type, content] of plain data, by exact content: methods of the value are not called."""
    if value is None:
        return ["none", None]
    for kind in (bool, int, float, complex, str):
        if isinstance(value, kind):
            return [kind.__name__, _scalar(kind, value)]
    for kind in (list, tuple, set, frozenset):
        if isinstance(value, kind):
            # Not the value's own iterator: a subclass could show one list and be another.
            items = list(kind.__iter__(value))  # pyright: ignore[reportArgumentType]
            if len(items) >= _MANY and kind in _ROWS and type(items[0]) in _ROWS:
                return ["digest", [kind.__name__, _digest(items)]]
            runs = itertools.groupby(items, type)
            return [kind.__name__, [part for of, run in runs for part in _run(of, list(run))]]
    if isinstance(value, dict):
        return ["dict", [[encoded(key), encoded(item)] for key, item in dict.items(value)]]
    if type(value).__module__ == "numpy":
        return ["array", encoded(value.tolist())]
    return ["object", type.__getattribute__(type(value), "__name__")]


def _digest(rows: list[Any]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr(row).encode() + b"\n")
    return digest.hexdigest()


def _run(kind: type, items: list[Any]) -> list[list[Any]]:
    """Neighbours of one type: packed as machine numbers if they are many, each by itself if not."""
    if kind in _PACKED and len(items) >= _LONG:
        try:
            numbers = array(_PACKED[kind], items)
        except OverflowError:
            pass
        else:
            return [["packed", [numbers.typecode, base64.b64encode(numbers).decode()]]]
    return [encoded(item) for item in items]


def _scalar(kind: type, value: Any) -> Any:
    if kind is bool:
        return value is True
    if kind is int:
        return int.__format__(value, "x")
    if kind is float:
        return float.__repr__(value)
    return complex.__repr__(value) if kind is complex else str.__str__(value)


def _drop_rights(limits: dict[str, int]) -> None:
    for kind, value in (
        (resource.RLIMIT_CPU, limits["cpu_s"]),
        (resource.RLIMIT_AS, limits["memory_bytes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),  # no process, no thread: one program cannot outgrow its memory
    ):
        resource.setrlimit(kind, (value, value))
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def _outcomes(request: dict[str, Any]) -> dict[str, Any]:
    sys.path.extend(request["packages"])
    scope: dict[str, Any] = {"__name__": "candidate"}
    inputs = eval(request["inputs"], {"inf": math.inf, "nan": math.nan})
    try:
        exec(compile(request["source"], "<answer>", "exec"), scope)
        entry = scope[request["entry"]]
    except BaseException as failure:
        return {"error": f"{type(failure).__name__}: {failure}"[:200]}
    return {"outcomes": [_outcome(entry, arguments) for arguments in inputs]}


def _outcome(entry: Any, arguments: list[Any]) -> list[Any]:
    try:
        return encoded(entry(*copy.deepcopy(arguments)))
    except BaseException as failure:
        return ["error", f"{type(failure).__name__}: {failure}"[:200]]


def main() -> None:
    """Answer the one request; whatever the program prints goes nowhere."""
    reply = os.dup(1)
    silence = os.open("/dev/null", os.O_RDWR)
    request = json.load(sys.stdin)
    for stream in range(3):
        os.dup2(silence, stream)
    _drop_rights(request["limits"])
    text = json.dumps(_outcomes(request))
    with os.fdopen(reply, "w") as out:
        out.write(text)
    os._exit(0)


if __name__ == "__main__":
    main()
