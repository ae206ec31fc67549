"""Safetensors files written tensor by tensor, straight from the bytes of their sources."""

import json
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import BinaryIO

from slimwise.artifacts.weight_files import INDEX_NAME, LENGTH_BYTES, METADATA_KEY, SINGLE_NAME
from slimwise.export.plan import PlannedTensor

_CHUNK_BYTES = 16 * 2**20
_ALIGNMENT_BYTES = 8


def write_shards(folder: Path, shards: Sequence[Sequence[PlannedTensor]]) -> None:
    """Write model.safetensors, or numbered files and their index if there are several.

    Never holds more than a chunk of one tensor in memory.
    """
    if len(shards) == 1:
        _write_shard(folder / SINGLE_NAME, shards[0])
        return
    names = [f"model-{n:05}-of-{len(shards):05}.safetensors" for n in range(1, len(shards) + 1)]
    for name, shard in zip(names, shards, strict=True):
        _write_shard(folder / name, shard)
    index = {
        "metadata": {"total_size": sum(t.num_bytes for shard in shards for t in shard)},
        "weight_map": {
            tensor.name: name for name, shard in zip(names, shards, strict=True) for tensor in shard
        },
    }
    (folder / INDEX_NAME).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")


def _write_shard(path: Path, tensors: Sequence[PlannedTensor]) -> None:
    header = _header(tensors)
    with path.open("wb") as shard:
        shard.write(len(header).to_bytes(LENGTH_BYTES, "little"))
        shard.write(header)
        for tensor in tensors:
            with tensor.source.path.open("rb") as source:
                for begin, end in tensor.ranges:
                    source.seek(tensor.source.begin + begin)
                    _copy(source, shard, end - begin)


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


def _copy(source: BinaryIO, target: BinaryIO, num_bytes: int) -> None:
    while num_bytes:
        chunk = source.read(min(num_bytes, _CHUNK_BYTES))
        if not chunk:
            raise EOFError(f"{source.name} ended early")
        target.write(chunk)
        num_bytes -= len(chunk)
