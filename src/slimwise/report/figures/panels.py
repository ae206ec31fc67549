"""A page of panels, one per decoding and benchmark, that share both axes."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from slimwise.core.vocabulary import Decoding
from slimwise.report.figures.style import PAGE_WIDTH_IN, set_panel_title
from slimwise.report.labels import benchmark_label

_SURROUND_HEIGHT_IN = 0.9
"""Height of the legend, the titles and the axis label, inches."""


def panels_by_setting(
    frame: pd.DataFrame, *, row_label: str, panel_height_in: float
) -> tuple[Figure, list[tuple[Axes, pd.DataFrame]]]:
    """A page-wide figure, and each panel with its rows of the frame; first is top left.

    Rows of panels are decodings, labelled row_label with {decoding} filled in; columns are
    benchmarks, in the order in which the frame first names them.
    """
    decodings = [decoding for decoding in Decoding if decoding in set(frame["decoding"])]
    benchmarks = list(frame["benchmark"].unique())
    size = (PAGE_WIDTH_IN, panel_height_in * len(decodings) + _SURROUND_HEIGHT_IN)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(decodings), len(benchmarks), sharex=True, sharey=True, squeeze=False)
    for axes, decoding in zip(grid[:, 0], decodings, strict=True):
        axes.set_ylabel(row_label.format(decoding=decoding))
    for axes, benchmark in zip(grid[0], benchmarks, strict=True):
        set_panel_title(axes, benchmark_label(benchmark), len(benchmarks))
    settings = [(decoding, benchmark) for decoding in decodings for benchmark in benchmarks]
    rows = [
        frame[(frame["decoding"] == decoding) & (frame["benchmark"] == benchmark)]
        for decoding, benchmark in settings
    ]
    return figure, list(zip(grid.flat, rows, strict=True))
