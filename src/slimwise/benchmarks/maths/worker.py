"""Compares answers in a process of its own: one JSON pair a line in, one verdict a line out."""

import json
import resource
import sys
from dataclasses import asdict
from typing import Any

_MEMORY_BYTES = 4 << 30  # an answer such as 9^{9^9} must not take the machine's


def main() -> None:
    """Say hello, then answer until the input ends; a pair that cannot be compared is not equal."""
    from slimwise.benchmarks.maths.equality import compare

    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    _reply({})
    for line in sys.stdin:
        gold, answer = json.loads(line)
        try:
            _reply(asdict(compare(gold, answer)))
        except Exception as failure:
            _reply({"equal": False, "reason": f"{type(failure).__name__}: {failure}"[:200]})


def _reply(content: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
