"""GPUs that one server at a time may use: a file lock for each, which its holder's end releases.

A workflow engine counts GPUs but assigns none, and servers that meet on one run out of memory.
"""

import fcntl
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import takewhile
from pathlib import Path

from slimwise.errors import EngineError

VISIBLE = "CUDA_VISIBLE_DEVICES"
_LIST_GPUS = ("nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader")
_LIST_TIMEOUT_S = 60


@contextmanager
def leased_gpus(count: int, locks: Path | None = None) -> Iterator[tuple[str, ...]]:
    """Names of free GPUs for CUDA_VISIBLE_DEVICES, ours until the block or this process ends.

    Only GPUs that are visible to us are taken. EngineError if fewer are free.
    """
    folder = locks or Path(tempfile.gettempdir())
    gpus = visible_gpus()
    held: list[int] = []
    leased: list[str] = []
    try:
        for gpu in gpus:
            if len(leased) < count and (lock := _lock(folder, gpu)) is not None:
                held.append(lock)
                leased.append(gpu)
        if len(leased) < count:
            raise EngineError(
                f"{count} GPUs are needed and {len(leased)} of the {len(gpus)} visible ones are "
                f"free. Wait for other servers to end, lower serving.gpus, or widen {VISIBLE}."
            )
        yield tuple(leased)
    finally:
        for lock in held:
            os.close(lock)


def visible_gpus() -> tuple[str, ...]:
    """UUIDs of this host's GPUs, of those that CUDA_VISIBLE_DEVICES names if it is set.

    As CUDA reads it, up to the first word that names none, such as -1. EngineError if the driver
    does not list them.
    """
    try:
        listed = subprocess.run(
            _LIST_GPUS, capture_output=True, text=True, check=True, timeout=_LIST_TIMEOUT_S
        ).stdout
    except (OSError, subprocess.SubprocessError) as failure:
        raise EngineError(
            f"the GPUs of this host cannot be listed: {failure}. Install the NVIDIA driver."
        ) from failure
    uuids = dict(line.split(", ") for line in listed.splitlines())
    named = os.environ.get(VISIBLE)
    if named is None:
        return tuple(uuids.values())
    words = (uuids.get(word.strip(), word.strip()) for word in named.split(","))
    return tuple(takewhile(_is_uuid, words))


def _is_uuid(word: str) -> bool:
    """Of a GPU, or of a part of one, which the driver does not list."""
    return word.startswith(("GPU-", "MIG-"))


def _lock(folder: Path, gpu: str) -> int | None:
    """A held lock, None if another process has it."""
    path = folder / f"slimwise-{gpu}.lock"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT, 0o644)
    except PermissionError:  # another user's, which in /tmp may be opened but not created
        descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
