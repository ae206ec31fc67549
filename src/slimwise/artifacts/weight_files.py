"""Safetensors weights as they lie on disk: names, shapes and byte ranges. Torch-free."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

from slimwise.artifacts.strict_json import parse_json
from slimwise.errors import CheckpointError

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
LENGTH_BYTES = 8
METADATA_KEY = "__metadata__"

# Types below one byte are left out: how they are packed is their kernels' matter.
_ITEM_BYTES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 1),
        **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
        **dict.fromkeys(("U32", "I32", "F32"), 4),
        **dict.fromkeys(("U64", "I64", "F64"), 8),
    }
)


@dataclass(frozen=True)
class WeightEntry:
    """One tensor on disk: begin and end are offsets in the file; dtype as safetensors spells it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    path: Path
    begin: int
    end: int

    @property
    def num_bytes(self) -> int:
        """Bytes of the tensor in its file."""
        return self.end - self.begin

    @property
    def item_bytes(self) -> int:
        """Bytes of one value."""
        return self.num_bytes // max(prod(self.shape), 1)


def read_weights(folder: Path) -> dict[str, WeightEntry]:
    """Every tensor of the checkpoint by name; reads headers only.

    CheckpointError names a file that is missing or truncated, and a tensor that is not in exactly
    the file that the index names.
    """
    index = folder / INDEX_NAME
    if not index.is_file():
        return read_weight_file(_single_file(folder))
    located = _read_index(index)
    entries: dict[str, WeightEntry] = {}
    for file_name in sorted(set(located.values())):
        found = read_weight_file(folder / file_name)
        promised = {name for name, owner in located.items() if owner == file_name}
        _check_against_index(folder / file_name, promised, found, located)
        entries |= found
    return entries


def read_weight_file(path: Path) -> dict[str, WeightEntry]:
    """The tensors of one file by name; CheckpointError if it is missing, damaged or truncated."""
    try:
        size = path.stat().st_size
        with path.open("rb") as content:
            length = int.from_bytes(content.read(LENGTH_BYTES), "little")
            header = content.read(length) if length <= size else b""
    except OSError as failure:
        raise CheckpointError(
            f"cannot read weights {path}: {failure.strerror}. Fetch the checkpoint again."
        ) from failure
    data_begin = LENGTH_BYTES + length
    entries = _parse_header(path, header, data_begin)
    end = max((entry.end for entry in entries.values()), default=data_begin)
    if end != size:
        raise CheckpointError(
            f"weights {path} are truncated or overwritten: the header promises {end} bytes, the "
            f"file has {size}. Fetch the checkpoint again."
        )
    return entries


def _single_file(folder: Path) -> Path:
    files = sorted(folder.glob("*.safetensors"))
    if len(files) == 1:
        return files[0]
    found = ", ".join(path.name for path in files) or "none"
    raise CheckpointError(
        f"{folder} needs {INDEX_NAME} or exactly one .safetensors file; found: {found}. Fetch the "
        "checkpoint again."
    )


def _read_index(index: Path) -> dict[str, str]:
    try:
        located = parse_json(index.read_bytes())["weight_map"]
        well_formed = all(Path(owner).name == owner for owner in located.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as failure:
        raise CheckpointError(
            f"cannot read {index}: {failure}. Fetch the checkpoint again."
        ) from failure
    if not well_formed:
        raise CheckpointError(f"{index} names files outside its folder. Fetch it again.")
    return located


def _check_against_index(
    path: Path, promised: set[str], found: Mapping[str, WeightEntry], located: Mapping[str, str]
) -> None:
    for name in sorted(promised - found.keys()):
        raise CheckpointError(
            f"{path} lacks {name}, which {INDEX_NAME} says it holds. Fetch the checkpoint again."
        )
    for name in sorted(found.keys() - promised):
        where = located.get(name)
        claim = f"says is in {where}" if where else "does not list"
        raise CheckpointError(
            f"{path} holds {name}, which {INDEX_NAME} {claim}. Fetch the checkpoint again."
        )


def _parse_header(path: Path, header: bytes, data_begin: int) -> dict[str, WeightEntry]:
    try:
        described = parse_json(header)
        described.pop(METADATA_KEY, None)
        return {name: _entry(name, fields, path, data_begin) for name, fields in described.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as failure:
        raise CheckpointError(
            f"weights {path} have no readable header: {failure}. Fetch the checkpoint again."
        ) from failure


def _entry(name: str, fields: Mapping[str, Any], path: Path, data_begin: int) -> WeightEntry:
    (begin, end), shape, dtype = fields["data_offsets"], fields["shape"], fields["dtype"]
    if not all(type(number) is int and number >= 0 for number in (begin, end, *shape)):
        raise ValueError(f"{name} has offsets {begin!r}..{end!r} and shape {shape!r}")
    item_bytes = _ITEM_BYTES.get(dtype)
    if begin > end or (item_bytes is not None and end - begin != item_bytes * prod(shape)):
        raise ValueError(f"{name}, {dtype} {shape}, cannot lie at {begin}..{end}")
    return WeightEntry(name, str(dtype), tuple(shape), path, data_begin + begin, data_begin + end)
