"""A vLLM server of our own: started, waited for, and stopped whatever happens."""

import logging
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from slimwise.artifacts.pool_files import PoolFiles
from slimwise.engine.command import NO_POOLS, ServerCommand, server_command, this_host
from slimwise.engine.config import ServingConfig
from slimwise.errors import EngineError

_log = logging.getLogger(__name__)
_POLL_S = 0.1
_HEALTH_TIMEOUT_S = 5
_GRACE_S = 10
_TAIL_LINES = 15
_CAUSE_LINES = 3
_CAUSE = re.compile(r"\b\w*(?:Error|Exception): .*")


@contextmanager
def serve(
    model: Path, config: ServingConfig, log: Path, pools: Mapping[str, PoolFiles | Path] = NO_POOLS
) -> Iterator[str]:
    """The base URL of a healthy server of the model folder, for as long as the block runs.

    pools are the files of each, or its keep-set file alone, by the name that requests choose.
    Its output is kept in the log file. EngineError with the last lines of it if the server ends
    or is not healthy in time, also if it ends during the block.
    """
    port = _free_port(config.host)
    command = server_command(
        model, config, port=port, parent=os.getpid(), host=this_host(), pools=pools
    )
    base_url = f"http://{config.host}:{port}"
    with run_server(command, base_url, log, start_timeout_s=config.start_timeout_s):
        yield base_url


@contextmanager
def run_server(
    command: ServerCommand, base_url: str, log: Path, *, start_timeout_s: float
) -> Iterator[None]:
    """The command as a process group of its own, healthy inside the block and gone after it."""
    start = time.monotonic()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            command.arguments,
            env=os.environ | dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_healthy(process, base_url, log, start_timeout_s)
        _log.info(
            "server of process %d healthy after %.1f s", process.pid, time.monotonic() - start
        )
        yield
    except EngineError as failure:
        if process.poll() is None:
            raise
        raise EngineError(
            f"{failure} The server ended with status {process.returncode}. {_tail(log)}"
        ) from failure
    finally:
        _stop(process)


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def _wait_until_healthy(
    process: "subprocess.Popen[bytes]", base_url: str, log: Path, timeout_s: float
) -> None:
    deadline = time.monotonic() + timeout_s
    while not _is_healthy(base_url):
        if process.poll() is not None:
            raise EngineError("the server ended before it was healthy.")
        if time.monotonic() > deadline:
            raise EngineError(
                f"the server was not healthy after {timeout_s:g} s. Raise serving.start_timeout_s "
                f"if it was still loading. {_tail(log)}"
            )
        time.sleep(_POLL_S)
    if process.poll() is not None:
        raise EngineError(f"another server answers at {base_url}; ours has ended.")


def _is_healthy(base_url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{base_url}/health", timeout=_HEALTH_TIMEOUT_S) as reply:
            return reply.status == 200
    except (urllib.error.URLError, OSError):
        return False


def _tail(log: Path) -> str:
    """The first errors that the log names, then its last lines: a cause often lies far above."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    causes = list(dict.fromkeys(found[0] for line in lines if (found := _CAUSE.search(line))))
    shown = [*causes[:_CAUSE_LINES], "last lines:", *lines[-_TAIL_LINES:]]
    return f"Log {log}:\n  " + "\n  ".join(shown)


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """SIGTERM, then SIGKILL, to the whole group, members that outlive their leader included."""
    try:
        _signal_group(process.pid, signal.SIGTERM)
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        _log.warning("server of process %d ignored SIGTERM for %d s", process.pid, _GRACE_S)
    finally:
        _signal_group(process.pid, signal.SIGKILL)
        process.wait()


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
