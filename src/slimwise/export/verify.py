"""Whether a folder is a whole checkpoint, and an exported one what was planned."""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from slimwise.artifacts.weight_files import INDEX_NAME, WeightEntry, read_weights
from slimwise.backbones.registry import InspectedCheckpoint, inspect_checkpoint
from slimwise.errors import CheckpointError
from slimwise.export.coverage import check_expert_tensors
from slimwise.export.plan import PlannedTensor

_CHUNK_VALUES = 2**24
_SCALE_ENDINGS = ("_scale", "_scale_inv")


def verify_checkpoint(folder: Path, planned: Sequence[PlannedTensor]) -> None:
    """Raise CheckpointError naming the first tensor or file that is not as it must be.

    What verify_folder checks, and every planned tensor is there in its shape and type, and no
    other one.
    """
    entries = read_weights(folder)
    _check_plan(entries, planned)
    _check_total(folder, entries)
    verify_folder(folder)


def verify_folder(folder: Path) -> InspectedCheckpoint:
    """What the folder holds, if it is a whole checkpoint of a supported family.

    Every tensor lies in exactly its indexed file, there is no other weight file, routers and
    experts agree with config.json in number and shape, all values are finite and scales above 0.
    CheckpointError or BackboneError names the first tensor, file or key that is not so.
    """
    found = inspect_checkpoint(folder)
    entries = read_weights(folder)
    _check_files(folder, entries)
    check_expert_tensors(entries.values(), found.backbone, found.config)
    check_finite(entries.values())
    return found


def check_finite(entries: Iterable[WeightEntry]) -> None:
    """Raise CheckpointError naming a tensor with a NaN or infinity, or a scale that is not > 0."""
    by_path = sorted(entries, key=lambda entry: entry.path)
    for path, members in groupby(by_path, key=lambda entry: entry.path):
        with safe_open(path, framework="pt") as content:
            for entry in members:
                _check_values(entry, content.get_tensor(entry.name))


def _check_values(entry: WeightEntry, tensor: Tensor) -> None:
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return
    is_scale = entry.name.endswith(_SCALE_ENDINGS)
    # Chunks bound the copy that one-byte types need. NaN passes through aminmax, which takes one
    # pass without a copy: 100 times the speed of isfinite in bfloat16 on a CPU.
    for chunk in tensor.flatten().split(_CHUNK_VALUES):
        low, high = (chunk if chunk.dtype.itemsize > 1 else chunk.float()).aminmax()
        if not (low.isfinite() and high.isfinite()):
            raise CheckpointError(f"{entry.path}: {entry.name} holds values that are not finite.")
        if is_scale and low <= 0:
            raise CheckpointError(f"{entry.path}: {entry.name} holds scales that are not > 0.")


def _check_files(folder: Path, entries: Mapping[str, WeightEntry]) -> None:
    used = {entry.path.name for entry in entries.values()}
    stale = sorted({path.name for path in folder.glob("*.safetensors")} - used)
    if stale:
        raise CheckpointError(f"{folder}: {stale[0]} holds no tensor of the index; delete it.")


def _check_total(folder: Path, entries: Mapping[str, WeightEntry]) -> None:
    index = folder / INDEX_NAME
    if not index.is_file():
        return
    stated = json.loads(index.read_bytes()).get("metadata", {}).get("total_size")
    total = sum(entry.num_bytes for entry in entries.values())
    if stated != total:
        raise CheckpointError(f"{index} states {stated} bytes of tensors, its files hold {total}.")


def _check_plan(entries: Mapping[str, WeightEntry], planned: Sequence[PlannedTensor]) -> None:
    expected = {tensor.name: tensor for tensor in planned}
    for name in sorted(expected.keys() ^ entries.keys()):
        problem = "is missing" if name in expected else "was not planned"
        raise CheckpointError(f"tensor {name} {problem} in the exported checkpoint.")
    for name, tensor in expected.items():
        written = entries[name]
        if (written.shape, written.dtype) != (tensor.shape, tensor.source.dtype):
            raise CheckpointError(
                f"{written.path}: {name} is {written.dtype} {list(written.shape)}; planned was "
                f"{tensor.source.dtype} {list(tensor.shape)}."
            )
