import hashlib
import os

import pytest

from slimwise.artifacts.weight_files import WeightEntry
from slimwise.errors import CheckpointError
from slimwise.export import direct_io
from slimwise.export.direct_io import chunk_buffer, hashed_file, read_chunks


@pytest.fixture(params=["direct", "through the cache"])
def folder(request, tmp_path, monkeypatch):
    """A folder, also as one of a file system that refuses to do without its cache."""
    if request.param != "direct":
        monkeypatch.setattr(direct_io.os, "O_DIRECT", 0)
    monkeypatch.setattr(direct_io, "CHUNK_BYTES", 3 * 4096)
    return tmp_path


def _entry(path, begin, end, item_bytes):
    return WeightEntry("w", "U8", ((end - begin) // item_bytes,), path, begin, end)


@pytest.mark.parametrize("begin", [0, 1, 4095, 4096, 5000])
@pytest.mark.parametrize("item_bytes", [1, 2, 5])
def test_pieces_are_the_ranges_in_whole_values(folder, begin, item_bytes):
    content = os.urandom(100_001)
    (folder / "weights").write_bytes(content)
    ranges = [(0, 10), (20, 20 + 8190), (10_000, 70_000)]
    entry = _entry(folder / "weights", begin, begin + 90_000, item_bytes)
    pieces = [bytes(piece) for piece in read_chunks(entry, ranges, chunk_buffer())]
    expected = b"".join(content[begin + first : begin + last] for first, last in ranges)
    assert b"".join(pieces) == expected
    assert all(len(piece) % item_bytes == 0 for piece in pieces)
    assert max(map(len, pieces)) == 3 * 4096 - 3 * 4096 % item_bytes


@pytest.mark.parametrize("size", [0, 4095, 4096, 3 * 4096, 20_000])
def test_a_file_that_became_shorter_is_named(folder, size):
    (folder / "weights").write_bytes(bytes(size))
    entry = _entry(folder / "weights", 0, 24_000, 1)
    with pytest.raises(CheckpointError, match="weights ended early"):
        list(read_chunks(entry, [(0, 24_000)], chunk_buffer()))


@pytest.mark.parametrize("sizes", [[0], [7], [4096], [3 * 4096], [8, 5, 40_000, 1], [12_287, 2]])
def test_the_file_holds_what_was_written_and_the_digest_is_its_own(folder, sizes):
    (folder / "new").write_bytes(os.urandom(90_000))
    parts = [os.urandom(size) for size in sizes]
    with hashed_file(folder / "new") as file:
        for part in parts:
            changing = bytearray(part)
            file.write(memoryview(changing))
            changing[:] = bytes(len(changing))
        digest = file.finish()
    content = (folder / "new").read_bytes()
    assert content == b"".join(parts)
    assert digest == hashlib.sha256(content).hexdigest()
