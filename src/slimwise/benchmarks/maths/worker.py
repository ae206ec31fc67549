"""Compares answers in a process of its own: one JSON pair a line in, one verdict a line out."""

import json
import sys


def main() -> None:
    """Answer until the input ends; a pair that cannot be compared is not equal."""
    from slimwise.benchmarks.maths.equality import are_equal

    for line in sys.stdin:
        gold, answer = json.loads(line)
        try:
            reply = {"equal": are_equal(gold, answer)}
        except Exception as failure:
            reply = {"equal": False, "reason": f"{type(failure).__name__}: {failure}"[:200]}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
