"""Files and folders that appear whole or not at all, also where the machine ends meanwhile.

That costs 1 to 10 ms a file: a study's are some hundreds. Exported weights pass by the cache, so
that nearly all of them are on the disk already.
"""

import errno
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from slimwise.errors import ArtifactError


@contextmanager
def atomic_file(path: Path, *, is_durable: bool = True) -> Generator[Path, None, None]:
    """A path beside `path`, of the same suffix, that is renamed to it when the block succeeds.

    Parents are made. A file that is soon written anew need not be durable: it is whole too, but
    nothing waits for the disk. ArtifactError if the folder cannot be written to.
    """
    temporary = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    _prepare_parent(path)
    try:
        yield temporary
        if is_durable:
            _put(temporary, path)
        else:
            temporary.replace(path)
    except OSError as failure:
        raise _not_writable(path, failure) from failure
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_directory(path: Path) -> Generator[Path, None, None]:
    """An empty folder beside `path` that takes its place when the block succeeds.

    What lay at `path` before is removed then, and kept if the block fails. Parents are made.
    ArtifactError if the parent cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    _prepare_parent(path)
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        yield temporary
        for inner in temporary.rglob("*"):
            _sync(inner)
        if path.exists():
            shutil.rmtree(path)
        _put(temporary, path)
    except OSError as failure:
        raise _not_writable(path, failure) from failure
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put(temporary: Path, path: Path) -> None:
    _sync(temporary)
    temporary.replace(path)
    _sync(path.parent)


def _sync(path: Path) -> None:
    """Return once the file's bytes, or the folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as failure:
        if failure.errno != errno.EINVAL:  # of a file system that cannot, as some with folders
            raise
    finally:
        os.close(descriptor)


def _prepare_parent(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise _not_writable(path, failure) from failure
    # An access check of its own: a library that is handed the path may fail in its own words.
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ArtifactError(
            f"cannot write {path}: folder {path.parent} is not writable. Make it writable, or "
            "choose another results folder."
        )


def _not_writable(path: Path, failure: OSError) -> ArtifactError:
    return ArtifactError(
        f"cannot write {path}: {failure}. Free the path, or choose another results folder."
    )
