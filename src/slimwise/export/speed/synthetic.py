"""A checkpoint of a published shape with meaningless weights, written without a model in memory."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, PreTrainedConfig

from slimwise.artifacts.weight_files import INDEX_NAME, LENGTH_BYTES

_CHUNK_BYTES = 16 * 2**20
_BF16_BYTES = 2
_FINITE = 0xBFFF
"""Without the exponent's highest bit a bfloat16 is below 2 in size."""

Shapes = dict[str, tuple[int, ...]]


def write_synthetic_checkpoint(folder: Path, config: PreTrainedConfig, shard_gib: float) -> int:
    """Write a causal language model in files of about shard_gib; the bytes of all its weights.

    The bytes are random, so that no file system can store them for less.
    """
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    config.architectures = [type(model).__name__]
    folder.mkdir(parents=True)
    config.to_json_file(folder / "config.json", use_diff=False)
    shards = list(_shards(shapes, int(shard_gib * 2**30)))
    names = [f"model-{n:05}-of-{len(shards):05}.safetensors" for n in range(1, len(shards) + 1)]
    located = {}
    for name, shard in zip(names, shards, strict=True):
        _write_shard(folder / name, shard)
        located |= dict.fromkeys(shard, name)
    (folder / INDEX_NAME).write_text(json.dumps({"weight_map": located}), "utf-8")
    return sum(map(_num_bytes, shapes.values()))


def _shards(shapes: Shapes, max_bytes: int) -> Iterator[Shapes]:
    shard: Shapes = {}
    size = 0
    for name, shape in shapes.items():
        if shard and size + _num_bytes(shape) > max_bytes:
            yield shard
            shard, size = {}, 0
        shard[name] = shape
        size += _num_bytes(shape)
    yield shard


def _num_bytes(shape: tuple[int, ...]) -> int:
    return torch.Size(shape).numel() * _BF16_BYTES


def _write_shard(path: Path, shapes: Shapes) -> None:
    described, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + _num_bytes(shape)
        described[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    header = json.dumps(described).encode()
    numbers = np.random.default_rng(0).integers(1 << 16, size=_CHUNK_BYTES // 2, dtype=np.uint16)
    noise = (numbers & _FINITE).tobytes()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(LENGTH_BYTES, "little"))
        file.write(header)
        for begin in range(0, end, _CHUNK_BYTES):
            file.write(noise[: min(_CHUNK_BYTES, end - begin)])
