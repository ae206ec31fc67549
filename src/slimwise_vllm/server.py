"""The OpenAI-compatible server of vLLM as `python -m slimwise_vllm.server`, quick to start on CPU.

The `vllm` command asks for a distribution of that name, which the CPU build does not have.
"""

import argparse
import ctypes
import importlib
import importlib.util
import multiprocessing
import os
import runpy
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve as vLLM's arguments ask until SIGTERM, or until the process --parent ends."""
    own = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    own.add_argument("--parent", type=int)
    own.add_argument("--host", default="127.0.0.1")  # vLLM alone would listen on every address
    arguments, others = own.parse_known_args()
    sys.argv[1:] = [*others, "--host", arguments.host]
    if arguments.parent is not None:
        _end_with(arguments.parent)
    # vLLM adds the HTTP routes of plugins only if this names them.
    os.environ.setdefault("VLLM_PLUGINS", "slimwise")
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        _fork_the_engine()
    # Run as a script: 0.26 has its argument handling there, and 0.32 both there and in main().
    runpy.run_module(_entry_point(), run_name="__main__")


def _end_with(parent: int) -> None:
    _end_with_parent(signal.SIGTERM)
    if os.getppid() != parent:  # it ended before the signal was asked for
        raise SystemExit(f"process {parent}, which started this server, has ended")


def _end_with_parent(number: signal.Signals) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


def _fork_the_engine() -> None:
    """Let the engine process inherit the imports, 7 of 18 s, instead of repeating them.

    vLLM spawns it because an accelerator's state does not survive a fork. A CPU has none, and
    nothing has run in parallel before the engine starts.
    """
    importlib.import_module("vllm.v1.worker.cpu_worker")
    engine_processes = importlib.import_module("vllm.v1.engine.utils")
    vars(engine_processes)["get_mp_context"] = lambda: multiprocessing.get_context("fork")
    # It inherits the server's socket too, on which it would let requests wait for a dead server.
    os.register_at_fork(after_in_child=lambda: _end_with_parent(signal.SIGKILL))


def _entry_point() -> str:
    if importlib.util.find_spec("vllm.entrypoints.launchers"):
        return "vllm.entrypoints.launchers.api_server.entry"
    return "vllm.entrypoints.openai.api_server"  # 0.26


if __name__ == "__main__":
    main()
