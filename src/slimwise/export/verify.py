"""Whether a folder is a whole checkpoint, and an exported one what was planned."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from slimwise.artifacts.weight_files import INDEX_NAME, WeightEntry, read_weights
from slimwise.backbones.registry import InspectedCheckpoint, inspect_checkpoint
from slimwise.errors import CheckpointError
from slimwise.export.coverage import check_expert_tensors
from slimwise.export.plan import PlannedTensor
from slimwise.export.values import check_all_values


def verify_checkpoint(folder: Path, planned: Sequence[PlannedTensor]) -> None:
    """Raise CheckpointError naming the first tensor or file that is not as it must be.

    What verify_folder checks but the values, which were checked when they were written, and every
    planned tensor is there in its shape and type, and no other one.
    """
    entries = read_weights(folder)
    _check_plan(entries, planned)
    _check_total(folder, entries)
    _check_tensors(folder, inspect_checkpoint(folder), entries)


def verify_folder(folder: Path) -> InspectedCheckpoint:
    """What the folder holds, if it is a whole checkpoint of a supported family.

    Every tensor lies in exactly its indexed file, there is no other weight file, routers and
    experts agree with config.json in number and shape, all values are finite and scales above 0.
    CheckpointError or BackboneError names the first tensor, file or key that is not so.
    """
    found, entries = inspect_checkpoint(folder), read_weights(folder)
    _check_tensors(folder, found, entries)
    check_all_values(entries.values())
    return found


def _check_tensors(
    folder: Path, found: InspectedCheckpoint, entries: Mapping[str, WeightEntry]
) -> None:
    _check_files(folder, entries)
    check_expert_tensors(entries.values(), found.backbone, found.config)


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
        raise CheckpointError(
            f"{index} states {stated} bytes of tensors, its files hold {total}. Export it again."
        )


def _check_plan(entries: Mapping[str, WeightEntry], planned: Sequence[PlannedTensor]) -> None:
    expected = {tensor.name: tensor for tensor in planned}
    for name in sorted(expected.keys() ^ entries.keys()):
        problem = "is missing" if name in expected else "was not planned"
        raise CheckpointError(
            f"tensor {name} {problem} in the exported checkpoint. Export it again."
        )
    for name, tensor in expected.items():
        written = entries[name]
        if (written.shape, written.dtype) != (tensor.shape, tensor.source.dtype):
            raise CheckpointError(
                f"{written.path}: {name} is {written.dtype} {list(written.shape)}; planned was "
                f"{tensor.source.dtype} {list(tensor.shape)}. Export it again."
            )
