"""A folder for a stage's resumable state that one process at a time may use."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from slimwise.errors import ArtifactError, WorkDirectoryBusyError

_LOCK_NAME = ".lock"


@contextmanager
def work_directory(path: Path) -> Iterator[Path]:
    """The folder, made if missing, held until the block ends or the process dies.

    A killed workflow engine leaves its job running; the job of the next run must not write beside
    it. Raises WorkDirectoryBusyError at once if the folder is held, ArtifactError if it cannot be
    made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path / _LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as failure:
        raise ArtifactError(
            f"work directory {path} cannot be made: {failure.strerror}. Free the path or make its "
            "parent writable."
        ) from failure
    try:
        _hold(descriptor, path)
        yield path
    finally:
        os.close(descriptor)


def _hold(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as failure:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        raise WorkDirectoryBusyError(
            f"work directory {path} is in use by process {holder}. Wait until it ends, or end it, "
            "then run the same command again."
        ) from failure
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
