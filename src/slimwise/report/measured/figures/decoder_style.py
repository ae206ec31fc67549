"""How decoders of different sizes are told apart, in grey too."""

from collections.abc import Iterable
from typing import Any

from slimwise.report.measured.decode_rows import Weights

# Okabe and Ito's palette, from the full model to the smallest pool.
_COLOURS = ("#4d4d4d", "#56b4e9", "#0072b2", "#d55e00", "#cc79a7")
_MARKERS = ("D", "v", "o", "s", "^")
_LINES: dict[str, dict[str, Any]] = {
    Weights.FULL: {"linestyle": "-"},
    Weights.MASKED: {"linestyle": "-"},
    Weights.EXPORTED: {"linestyle": (0, (4, 1.5)), "markerfacecolor": "white"},
}
ROUTING_LABELS = {
    "uniform": "uniform routing",
    "skewed": "skewed routing",
    "real": "measured",
}


def kept_style(num_kept: int, counts: Iterable[int]) -> dict[str, Any]:
    """Colour and marker of a number of kept experts among all that a figure shows."""
    rank = sorted(counts, reverse=True).index(num_kept) % len(_COLOURS)
    return {"color": _COLOURS[rank], "marker": _MARKERS[rank]}


def decoder_style(num_kept: int, weights: str, counts: Iterable[int]) -> dict[str, Any]:
    """Line properties: the size gives colour and marker, the weights line and filling."""
    return {**kept_style(num_kept, counts), **_LINES[weights]}


def decoder_label(num_kept: int, weights: str) -> str:
    """For example "full, 256", "masked, 128" or "exported, 128"."""
    return f"{'masked' if weights == Weights.MASKED else weights}, {num_kept}"
