"""Safetensors files written tensor by tensor, straight from the bytes of their sources."""

import hashlib
import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

from slimwise.artifacts.weight_files import INDEX_NAME, LENGTH_BYTES, METADATA_KEY, SINGLE_NAME
from slimwise.export.plan import PlannedTensor

_CHUNK_BYTES = 16 * 2**20
_ALIGNMENT_BYTES = 8


def write_shards(folder: Path, shards: Sequence[Sequence[PlannedTensor]]) -> dict[str, str]:
    """Write model.safetensors, or numbered files and their index if there are several.

    The SHA-256 of each by name, taken on the way. Never holds more than a chunk of one tensor in
    memory.
    """
    if len(shards) == 1:
        return {SINGLE_NAME: _write_shard(folder / SINGLE_NAME, shards[0])}
    names = [f"model-{n:05}-of-{len(shards):05}.safetensors" for n in range(1, len(shards) + 1)]
    digests = {
        name: _write_shard(folder / name, shard) for name, shard in zip(names, shards, strict=True)
    }
    index = {
        "metadata": {"total_size": sum(t.num_bytes for shard in shards for t in shard)},
        "weight_map": {
            tensor.name: name for name, shard in zip(names, shards, strict=True) for tensor in shard
        },
    }
    (folder / INDEX_NAME).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    return digests


class _HashedFile:
    """A file that is written from beginning to end, and the digest of what it holds so far."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()

    def write(self, content: bytes) -> None:
        self._file.write(content)
        self._digest.update(content)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def _write_shard(path: Path, tensors: Sequence[PlannedTensor]) -> str:
    header = _header(tensors)
    with path.open("wb") as file:
        shard = _HashedFile(file)
        shard.write(len(header).to_bytes(LENGTH_BYTES, "little"))
        shard.write(header)
        for tensor in tensors:
            with tensor.source.path.open("rb") as source:
                for begin, end in tensor.ranges:
                    source.seek(tensor.source.begin + begin)
                    _copy(source, shard, end - begin)
    return shard.hexdigest()


def _header(tensors: Sequence[PlannedTensor]) -> bytes:
    """The header as the format's own writer makes it, padded so that data begins aligned."""
    ends = list(accumulate(tensor.num_bytes for tensor in tensors))
    described: dict[str, object] = {METADATA_KEY: {"format": "pt"}}
    for tensor, end in zip(tensors, ends, strict=True):
        described[tensor.name] = {
            "dtype": tensor.source.dtype,
            "shape": tensor.shape,
            "data_offsets": [end - tensor.num_bytes, end],
        }
    header = json.dumps(described, separators=(",", ":"), ensure_ascii=False).encode()
    return header + b" " * (-len(header) % _ALIGNMENT_BYTES)


def _copy(source: BinaryIO, target: _HashedFile, num_bytes: int) -> None:
    while num_bytes:
        chunk = source.read(min(num_bytes, _CHUNK_BYTES))
        if not chunk:
            raise EOFError(f"{source.name} ended early")
        target.write(chunk)
        num_bytes -= len(chunk)
