"""Whether numbers can be weights: finite, and above 0 where they are quantisation scales."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from slimwise.artifacts.weight_files import WeightEntry
from slimwise.errors import CheckpointError
from slimwise.export.direct_io import chunk_buffer, read_chunks

_SCALE = re.compile(
    r"(.*\.)?(\w+_proj|(weight|input)(_global)?|output|act(ivation)?|[qkv])_scale(_inv)?"
)
"""Beside a weight that is quantised; families have trained scales of other names, of any sign."""
_BYTES_AT_ONCE = 2**18
"""What stays in a core's own cache while it is looked at."""


@dataclass(frozen=True)
class _Floats:
    """A type's bit patterns: unsigned numbers, those that are not finite have all of some bits."""

    unsigned: type[np.unsignedinteger]
    not_finite: int
    positive: range


_FLOATS: Mapping[str, _Floats] = MappingProxyType(
    {
        "F64": _Floats(np.uint64, 0x7FF << 52, range(1, 1 << 63)),
        "F32": _Floats(np.uint32, 0xFF << 23, range(1, 1 << 31)),
        "F16": _Floats(np.uint16, 0x1F << 10, range(1, 1 << 15)),
        "BF16": _Floats(np.uint16, 0xFF << 7, range(1, 1 << 15)),
        "F8_E4M3": _Floats(np.uint8, 0x7F, range(1, 1 << 7)),
        "F8_E5M2": _Floats(np.uint8, 0x1F << 2, range(1, 1 << 7)),
        "F8_E8M0": _Floats(np.uint8, 0xFF, range(1 << 8)),
    }
)


def check_all_values(entries: Iterable[WeightEntry]) -> None:
    """Read the tensors whole; CheckpointError names the first that check_values refuses."""
    buffer = chunk_buffer()
    for entry in entries:
        for chunk in read_chunks(entry, [(0, entry.num_bytes)], buffer):
            check_values(entry, chunk)


def check_values(entry: WeightEntry, chunk: memoryview) -> None:
    """Raise CheckpointError if a chunk of the tensor holds a NaN, infinity, or scale not > 0.

    A scale is one of quantisation.
    """
    floats = _FLOATS.get(entry.dtype)
    if floats is None or not chunk:
        return
    is_scale = _SCALE.fullmatch(entry.name) is not None
    for begin in range(0, len(chunk), _BYTES_AT_ONCE):
        bits = np.frombuffer(chunk[begin : begin + _BYTES_AT_ONCE], floats.unsigned)
        _check_bits(entry, bits, floats, is_scale)


def _check_bits(entry: WeightEntry, bits: np.ndarray, floats: _Floats, is_scale: bool) -> None:
    mask = floats.unsigned(floats.not_finite)
    if (bits & mask).max() == mask:
        raise CheckpointError(
            f"{entry.path}: {entry.name} holds values that are not finite. Fetch the checkpoint "
            "again, or mend whatever wrote it."
        )
    if is_scale and not (int(bits.min()) in floats.positive and int(bits.max()) in floats.positive):
        raise CheckpointError(
            f"{entry.path}: {entry.name} holds scales that are not > 0. Fetch the checkpoint again."
        )
