"""Servers of our own: started side by side, watched, and stopped whatever happens."""

import logging
import os
import re
import signal
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from slimwise.engine.api_key import authorization
from slimwise.engine.command import ServerCommand
from slimwise.errors import EngineError

_log = logging.getLogger(__name__)
_POLL_S = 0.1
_HEALTH_TIMEOUT_S = 5
_GRACE_S = 10
_TAIL_LINES = 15
_CAUSE_LINES = 3
_WARNING = " WARNING "  # may quote an error that did not happen
# pydantic tells what it refused on a line below the name of its error.
_CAUSE = re.compile(r"\b\w*(?:Error|Exception): .*|\bValue error, .*")


@dataclass(frozen=True)
class Server:
    """A process that answers at base_url, its name in errors, and the file of its output."""

    name: str
    command: ServerCommand
    base_url: str
    log: Path


class RunningServers:
    """Servers with a process group each, in the order they were started."""

    def __init__(self) -> None:
        self._processes: list[tuple[Server, subprocess.Popen[bytes]]] = []
        self._num_healthy = 0

    def start(self, server: Server) -> None:
        """Start the process; that it answers is for wait_until_healthy to say."""
        server.log.parent.mkdir(parents=True, exist_ok=True)
        with server.log.open("wb") as output:
            process = subprocess.Popen(
                server.command.arguments,
                cwd=server.command.folder,
                env=os.environ | dict(server.command.environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._processes.append((server, process))
        _log.info("started %s, its output is in %s", server.name, server.log)

    def wait_until_healthy(self, timeout_s: float) -> None:
        """Return when those started last answer too; EngineError if one ends or takes longer."""
        start = time.monotonic()
        for server, process in self._processes[self._num_healthy :]:
            while not _is_healthy(server.base_url):
                self.raise_if_ended("before it was healthy")
                if time.monotonic() > start + timeout_s:
                    raise EngineError(
                        f"{server.name} was not healthy after {timeout_s:g} s. Raise "
                        f"serving.start_timeout_s if it was still loading. {_tail(server.log)}"
                    )
                time.sleep(_POLL_S)
            if process.poll() is not None:
                raise EngineError(
                    f"another server answers at {server.base_url}; {server.name} has ended."
                )
            self._num_healthy += 1
            _log.info("%s healthy after %.1f s", server.name, time.monotonic() - start)

    def wait_for_others(self, base_urls: Sequence[str], timeout_s: float) -> None:
        """Return when servers that run elsewhere answer; EngineError names one that does not."""
        deadline = time.monotonic() + timeout_s
        for base_url in base_urls:
            while not _is_healthy(base_url):
                self.raise_if_ended("while it waited for others")
                if time.monotonic() > deadline:
                    raise EngineError(
                        f"no server answers at {base_url} after {timeout_s:g} s. Start it, or "
                        "correct its address in section disaggregation."
                    )
                time.sleep(_POLL_S)

    def raise_if_ended(self, when: str) -> None:
        """EngineError if any of them has ended."""
        ended = self.ended(when)
        if ended:
            raise EngineError("\n".join(ended))

    def ended(self, when: str) -> list[str]:
        """Status, cause and last lines of every server that has ended."""
        return [
            f"{server.name} ended {when}, with status {process.returncode}. {_tail(server.log)}"
            for server, process in self._processes
            if process.poll() is not None
        ]

    def stop(self) -> None:
        """SIGTERM, then SIGKILL, to the groups, members that outlive their leader included."""
        try:
            for _, process in self._processes:
                _signal_group(process.pid, signal.SIGTERM)
            deadline = time.monotonic() + _GRACE_S
            for server, process in self._processes:
                try:
                    process.wait(max(deadline - time.monotonic(), 0))
                except subprocess.TimeoutExpired:
                    _log.warning("%s ignored SIGTERM for %d s", server.name, _GRACE_S)
        finally:
            for _, process in self._processes:
                _signal_group(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def run_server(
    command: ServerCommand, base_url: str, log: Path, *, start_timeout_s: float
) -> Iterator[None]:
    """The command as one server, healthy inside the block and gone after it."""
    with run_servers(
        [Server("the server", command, base_url, log)], start_timeout_s=start_timeout_s
    ):
        yield


@contextmanager
def run_servers(servers: Sequence[Server], *, start_timeout_s: float) -> Iterator[RunningServers]:
    """The servers, started at once, all healthy when the block begins and gone after it.

    An EngineError of the block is explained by the servers that ended meanwhile.
    """
    running = RunningServers()
    try:
        for server in servers:
            running.start(server)
        running.wait_until_healthy(start_timeout_s)
        try:
            yield running
        except EngineError as failure:
            ended = running.ended("meanwhile")
            if not ended:
                raise
            raise EngineError("\n".join([str(failure), *ended])) from failure
    finally:
        running.stop()


def _is_healthy(base_url: str) -> bool:
    # A router that has a key asks for it here too.
    request = urllib.request.Request(f"{base_url}/health", headers=authorization())
    try:
        with urllib.request.urlopen(request, timeout=_HEALTH_TIMEOUT_S) as reply:
            return reply.status == 200
    except (OSError, HTTPException):
        return False


def _tail(log: Path) -> str:
    """The first errors that the log names, then its last lines: a cause often lies far above."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    found = (_CAUSE.search(line) for line in lines if _WARNING not in line)
    causes = list(dict.fromkeys(cause[0] for cause in found if cause))
    shown = [*causes[:_CAUSE_LINES], "last lines:", *lines[-_TAIL_LINES:]]
    return f"Log {log}:\n  " + "\n  ".join(shown)


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
