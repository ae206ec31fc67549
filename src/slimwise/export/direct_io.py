"""Weights that pass the system's cache by: read and written once, they would only fill it.

That costs a tenth of the processor time of buffered reads and writes. Offsets, sizes and memory
are whole blocks; a file system that cannot do without its cache uses it all the same.
"""

import fcntl
import hashlib
import mmap
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from slimwise.artifacts.weight_files import WeightEntry
from slimwise.errors import CheckpointError

CHUNK_BYTES = 8 * 2**20

_BLOCK_BYTES = 4096


def chunk_buffer() -> memoryview:
    """Memory that begins with a page and holds a chunk, wherever in a block that begins."""
    return memoryview(mmap.mmap(-1, CHUNK_BYTES + _BLOCK_BYTES))


def read_chunks(
    entry: WeightEntry, ranges: Iterable[tuple[int, int]], buffer: memoryview
) -> Iterator[memoryview]:
    """The bytes of the tensor's ranges, in pieces of whole values.

    Each piece lies in the chunk buffer until the next one is asked for. CheckpointError if the file
    has become shorter than its header says.
    """
    step = CHUNK_BYTES - CHUNK_BYTES % max(entry.item_bytes, 1)
    with _opened(entry.path, os.O_RDONLY) as source:
        for begin, end in ranges:
            for start in range(begin, end, step):
                size = min(step, end - start)
                yield _read(source, entry.path, entry.begin + start, buffer, size)


def _read(source: int, path: Path, begin: int, buffer: memoryview, size: int) -> memoryview:
    first = begin % _BLOCK_BYTES
    end = first + size
    blocks = buffer[: end + -end % _BLOCK_BYTES]
    num_read = 0
    while num_read < end:
        more = os.preadv(source, [blocks[num_read:]], begin - first + num_read)
        num_read += more
        # Anywhere but at the file's end whole blocks are read.
        if num_read < end and (not more or more % _BLOCK_BYTES):
            raise CheckpointError(f"weights {path} ended early. Fetch them again.")
    return buffer[first:end]


class HashedFile:
    """A new file that is written from beginning to end, and the SHA-256 of what it was given."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self._buffer = memoryview(mmap.mmap(-1, CHUNK_BYTES))
        self._num_held = 0

    def write(self, content: bytes | memoryview) -> None:
        """Append the content, which may change afterwards."""
        self._digest.update(content)
        rest = memoryview(content)
        while rest:
            part = rest[: CHUNK_BYTES - self._num_held]
            self._buffer[self._num_held : self._num_held + len(part)] = part
            self._num_held += len(part)
            rest = rest[len(part) :]
            if self._num_held == CHUNK_BYTES:
                self._flush()

    def finish(self) -> str:
        """The hex digest of the file, of which all is written now."""
        _pass_by_cache(self._file, False)  # The last block is seldom whole.
        self._flush()
        return self._digest.hexdigest()

    def _flush(self) -> None:
        held = self._buffer[: self._num_held]
        while held:
            held = held[os.write(self._file, held) :]
        self._num_held = 0


@contextmanager
def hashed_file(path: Path) -> Iterator[HashedFile]:
    """A file that replaces what lies at the path; whole once it is finished."""
    with _opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
        yield HashedFile(file)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    file = os.open(path, flags, 0o666)
    try:
        _pass_by_cache(file, True)
        yield file
    finally:
        os.close(file)


def _pass_by_cache(file: int, whether: bool) -> None:
    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    # Refused by file systems that keep everything in memory, or beyond a network.
    with suppress(OSError):
        fcntl.fcntl(file, fcntl.F_SETFL, flags | os.O_DIRECT if whether else flags & ~os.O_DIRECT)
