"""A closed room for generated programs: no network, no other process, nothing to read or fill."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from slimwise.benchmarks.code import candidate
from slimwise.errors import SandboxError

# Imported for its path, and so that digests of the grading code hold it.
_CANDIDATE = Path(candidate.__file__)
_INSIDE = "/candidate.py"
_DISK_BYTES = 64 << 20
_REPLY_BYTES = 256 << 20  # HumanEval/15 counts to a million, many times over: 140 MiB
_INSTALL = "Install it: apt-get install -y bubblewrap (or your distribution's package)."
_ROOTS = ("/usr", "/bin", "/lib", "/lib64")


@dataclass(frozen=True)
class ProgramLimits:
    """What one program may use: wall-clock and CPU seconds alike, and address space."""

    time_s: int
    memory_gib: float


@dataclass(frozen=True)
class ProgramOutcome:
    """One encoded output an input, or why there are none."""

    outputs: tuple[Any, ...] = ()
    error: str = ""


def run_program(source: str, entry: str, inputs: str, limits: ProgramLimits) -> ProgramOutcome:
    """The program's outputs; inputs is the Python literal of a list of argument lists.

    SandboxError if the room itself cannot be had; whatever the program does is an outcome.
    """
    request = {
        "source": source,
        "entry": entry,
        "inputs": inputs,
        "packages": [sysconfig.get_path("purelib")],
        "limits": {
            "cpu_s": limits.time_s,
            "memory_bytes": int(limits.memory_gib * 2**30),
            "file_bytes": _REPLY_BYTES,
        },
    }
    # A file, not a pipe: its size limit holds for a program that writes to it without end.
    with tempfile.TemporaryFile() as reply:
        try:
            ended = subprocess.run(
                _command(),
                input=json.dumps(request).encode(),
                stdout=reply,
                stderr=subprocess.PIPE,
                timeout=limits.time_s,
                check=False,
                env={},
            )
        except subprocess.TimeoutExpired:
            return ProgramOutcome(error=f"not finished within {limits.time_s} s")
        _check_started(ended)
        reply.seek(0)
        return _outcome(reply.read(_REPLY_BYTES))


def _outcome(reply: bytes) -> ProgramOutcome:
    try:
        content: Mapping[str, Any] = json.loads(reply)
        return ProgramOutcome(tuple(content.get("outcomes", ())), str(content.get("error", "")))
    except (ValueError, AttributeError, TypeError, RecursionError):
        return ProgramOutcome(error="stopped at its limits")


def _check_started(ended: "subprocess.CompletedProcess[bytes]") -> None:
    message = ended.stderr.decode(errors="replace")
    if ended.returncode and message.startswith("bwrap: "):
        raise SandboxError(
            f"the sandbox did not start: {message.strip()[:300]}. Allow unprivileged user "
            "namespaces, or run as root."
        )


@cache
def _command() -> tuple[str, ...]:
    """The sandbox's command line; SandboxError if bubblewrap is missing."""
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        raise SandboxError(f"code is graded in bubblewrap, and there is no bwrap here. {_INSTALL}")
    readable = dict.fromkeys((*_ROOTS, sys.base_prefix, sys.prefix))
    binds = [part for path in readable for part in ("--ro-bind-try", path, path)]
    # The folders above them would be open to their maker only, and the program becomes another.
    above = dict.fromkeys(parent for path in readable for parent in reversed(Path(path).parents))
    parents = [
        part
        for path in above
        if str(path) != "/" and str(path) not in readable
        for part in ("--perms", "0755", "--dir", str(path))
    ]
    return (
        bubblewrap,
        *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"),
        *("--unshare-cgroup-try", "--die-with-parent", "--new-session", "--clearenv"),
        *_identity(),
        # Before the binds: an interpreter below /tmp stays visible.
        *("--size", str(_DISK_BYTES), "--tmpfs", "/tmp"),
        *parents,
        *binds,
        *("--ro-bind", str(_CANDIDATE), _INSIDE),
        *("--dev-bind", "/dev/null", "/dev/null"),
        *("--dev-bind", "/dev/urandom", "/dev/urandom"),
        *("--chdir", "/tmp"),
        *("--remount-ro", "/"),
        *("--setenv", "OPENBLAS_NUM_THREADS", "1"),
        # Relative where a relative entry of PATH found it, and the room is another folder.
        *(str(Path(sys.executable).absolute()), "-I", "-S", _INSIDE),
    )


def _identity() -> tuple[str, ...]:
    # Limits on processes do not hold for root, nor for root under another name in a user
    # namespace. Started by root, the program itself therefore becomes nobody for real.
    if os.getuid() == 0:
        return ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")
    return ("--unshare-user", "--uid", "65534", "--gid", "65534")
