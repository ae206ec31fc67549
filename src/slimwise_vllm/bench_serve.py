"""`vllm bench serve` as a process that measures one load after another.

Its imports take longer than a short load. Each line of its input is a JSON list of arguments, and
each line of its output the JSON of a result; what the benchmark prints goes to standard error.
"""

import json
import os
import sys


def main() -> None:
    """Measure until the input ends; a load that cannot be measured ends the process."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    from vllm.benchmarks.serve import add_cli_args
    from vllm.benchmarks.serve import main as measure
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = FlexibleArgumentParser()
    add_cli_args(parser)
    for line in sys.stdin:
        arguments = parser.parse_args(json.loads(line))
        assert arguments is not None
        result = measure(arguments)
        replies.write(json.dumps(result, default=float) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
