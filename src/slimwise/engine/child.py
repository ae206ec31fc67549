"""Becomes a program that ends with us: `python -m slimwise.engine.child <our process> <program>`.

For programs that cannot be told to watch their parent, and have nothing to put away: told to end,
vllm-router first waits for the answers to all requests that it has passed on.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Ask the kernel for SIGKILL when the parent ends, which an exec does not undo, then exec."""
    parent, *program = sys.argv[1:]
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(parent):  # it ended before the signal was asked for
        raise SystemExit(f"process {parent}, which started {program[0]}, has ended")
    os.execvp(program[0], program)


if __name__ == "__main__":
    main()
