"""Safetensors files written tensor by tensor, straight from the bytes of their sources.

One pass over the bytes does all: they are read, checked, hashed and written chunk by chunk, several
files at a time: the disk works for one while another is hashed. Only kept bytes are read, so
decoders are written one by one, not several from one reading of the source: for 75, 50 and 25 % of
the experts that would move 2.5 times the source in place of 3.0, a sixth less at most, and one more
num_kept would write every decoder anew.
"""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from pathlib import Path

from slimwise.artifacts.weight_files import INDEX_NAME, LENGTH_BYTES, METADATA_KEY, SINGLE_NAME
from slimwise.export.direct_io import chunk_buffer, hashed_file, read_chunks
from slimwise.export.plan import PlannedTensor
from slimwise.export.values import check_values

_ALIGNMENT_BYTES = 8


def write_shards(
    folder: Path, shards: Sequence[Sequence[PlannedTensor]], num_threads: int
) -> dict[str, str]:
    """Write model.safetensors, or numbered files and their index if there are several.

    The SHA-256 of each by name, taken on the way. Each of the threads writes one file and holds two
    chunks in memory. CheckpointError names a tensor with values that cannot be weights.
    """
    if len(shards) == 1:
        return {SINGLE_NAME: _write_shard(folder / SINGLE_NAME, shards[0])}
    names = [f"model-{n:05}-of-{len(shards):05}.safetensors" for n in range(1, len(shards) + 1)]
    with ThreadPoolExecutor(num_threads) as threads:
        written = threads.map(_write_shard, [folder / name for name in names], shards)
        digests = dict(zip(names, written, strict=True))
    index = {
        "metadata": {"total_size": sum(t.num_bytes for shard in shards for t in shard)},
        "weight_map": {
            tensor.name: name for name, shard in zip(names, shards, strict=True) for tensor in shard
        },
    }
    (folder / INDEX_NAME).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8")
    return digests


def _write_shard(path: Path, tensors: Sequence[PlannedTensor]) -> str:
    header = _header(tensors)
    buffer = chunk_buffer()
    with hashed_file(path) as shard:
        shard.write(len(header).to_bytes(LENGTH_BYTES, "little"))
        shard.write(header)
        for tensor in tensors:
            for chunk in read_chunks(tensor.source, tensor.ranges, buffer):
                check_values(tensor.source, chunk)
                shard.write(chunk)
        return shard.finish()


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
