"""JSON text as its standard has it, of which Python's reader accepts more. Torch-free."""

import json
import math
from typing import Any


def parse_json(text: str | bytes, *, constants: bool = False) -> Any:
    """The value; ValueError if the text is not JSON, nests too deeply, or repeats a key.

    NaN and infinite numbers are values only if constants is true, as in files that Python wrote.
    """
    try:
        return json.loads(
            text,
            object_pairs_hook=_distinct,
            parse_constant=float if constants else _finite,
            parse_float=float if constants else _finite,
        )
    except RecursionError as failure:
        raise ValueError("it is nested too deeply") from failure


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {repeated!r} stands twice in one object")
    return found


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(f"{word} is no finite number")
    return number
