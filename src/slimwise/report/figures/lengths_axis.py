"""The axis of output lengths, logarithmic in tokens."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator

_NUM_TICKS = 18
"""Ticks of all length axes of a row together; more would collide."""
_MARGIN_OCTAVES = 0.45


def set_length_axis(axes: Axes, lengths: pd.Series, num_columns: int) -> None:
    """Make the x axis cover the lengths, with ticks at powers of two that fit in the columns."""
    axes.set_xscale("log", base=2)
    margin = 2.0**_MARGIN_OCTAVES
    axes.set_xlim(max(lengths.min(), 1) / margin, lengths.max() * margin)
    axes.xaxis.set_major_locator(LogLocator(base=2, numticks=_NUM_TICKS // num_columns))
    axes.xaxis.set_major_formatter(FuncFormatter(_tokens))
    axes.minorticks_off()


def _tokens(value: float, _position: int) -> str:
    return f"{value / 1024:g}k" if value >= 1024 else f"{value:g}"
