"""Outputs of a sandboxed program, decoded and compared here, where the program has no say."""

import base64
import math
from array import array
from collections.abc import Iterator, Mapping
from typing import Any

_FLOAT_TOLERANCE = 1e-6  # absolute, for expected floats where a suite asks none
_RELATIVE_TOLERANCE = 1e-7  # numpy.testing's; both as evalplus compares
_COLLECTIONS: Mapping[str, type] = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}


class Opaque:
    """An object that is no plain data, or a failure; equal to nothing but itself."""

    def __init__(self, is_object: bool = False) -> None:
        self.is_object = is_object


def decoded(encoded: Any) -> Any:
    """The value that candidate.encoded describes; Opaque if it describes none."""
    try:
        return _decoded(*encoded)
    except (TypeError, ValueError, RecursionError):
        return Opaque()


def _decoded(kind: str, content: Any) -> Any:
    match kind:
        case "none" | "bool" | "str":
            return content
        case "int":
            return int(content, 16)
        case "float":
            return float(content)
        case "complex":
            return complex(content)
        case "dict":
            return {decoded(key): decoded(item) for key, item in content}
        case "array":
            return decoded(content)
        case _ if kind in _COLLECTIONS:
            return _COLLECTIONS[kind](_items(content))
    return Opaque(is_object=kind == "object")


def _items(content: list[list[Any]]) -> Iterator[Any]:
    for kind, item in content:
        if kind == "packed":
            typecode, numbers = item
            yield from array(typecode, base64.b64decode(numbers))
        else:
            yield decoded([kind, item])


def matches(output: Any, expected: Any, tolerance: float) -> bool:
    """Equality, or closeness of numbers where floats are expected or a tolerance is asked."""
    if output == expected:
        return True
    if tolerance == 0 and _is_floats(expected):
        tolerance = _FLOAT_TOLERANCE
    return tolerance > 0 and _is_close(output, expected, tolerance)


def _is_floats(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def _is_close(output: Any, expected: Any, tolerance: float) -> bool:
    if isinstance(expected, list | tuple):
        return (
            isinstance(output, list | tuple)
            and len(output) == len(expected)
            and all(map(_is_close, output, expected, [tolerance] * len(expected)))
        )
    if not isinstance(output, int | float) or not isinstance(expected, int | float):
        return output == expected
    limit = tolerance + _RELATIVE_TOLERANCE * abs(expected)
    return math.isclose(output, expected, rel_tol=0, abs_tol=limit)
