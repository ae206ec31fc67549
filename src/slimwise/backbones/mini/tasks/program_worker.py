"""Runs small programs, each in a forked child with hard limits, and returns their outputs as JSON.

Started as `python -I -S program_worker.py`; one JSON request a line on stdin, one reply a line on
stdout. Standard library only. The child never sees the expected outputs.
"""

import json
import os
import resource
import signal
import sys

_BUILTINS = {
    "abs": abs, "all": all, "any": any, "bool": bool, "dict": dict, "enumerate": enumerate,
    "filter": filter, "int": int, "len": len, "list": list, "map": map, "max": max, "min": min,
    "range": range, "reversed": reversed, "set": set, "sorted": sorted, "str": str, "sum": sum,
    "tuple": tuple, "zip": zip,
}  # fmt: skip
_CPU_SECONDS = 1
_MEMORY_BYTES = 256 << 20
_OUTPUT_BYTES = 1 << 20


def _limit() -> None:
    for kind, value in (
        (resource.RLIMIT_CPU, _CPU_SECONDS),
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (value, value))
    signal.alarm(2 * _CPU_SECONDS)


def _outputs(request: dict) -> dict:
    scope: dict = {"__builtins__": _BUILTINS}
    try:
        exec(compile(request["source"], "<answer>", "exec"), scope)
        return {"outputs": [scope[request["entry"]](value) for value in request["inputs"]]}
    except BaseException as failure:
        return {"error": f"{type(failure).__name__}: {failure}"[:200]}


def _child(request: dict, write_end: int) -> None:
    _limit()
    try:
        reply = json.dumps(_outputs(request))
    except (TypeError, ValueError, RecursionError, MemoryError):
        reply = json.dumps({"error": "the result is not plain data"})
    os.write(write_end, reply.encode()[:_OUTPUT_BYTES])
    os._exit(0)


def _run(line: str) -> str:
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _child(json.loads(line), write_end)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        reply = pipe.read(_OUTPUT_BYTES)
    os.waitpid(pid, 0)
    text = reply.decode(errors="replace")
    return text if text.endswith("}") else json.dumps({"error": "stopped at its limits"})


if __name__ == "__main__":
    for request_line in sys.stdin:
        sys.stdout.write(_run(request_line) + "\n")
        sys.stdout.flush()
