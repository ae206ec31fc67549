"""How far two criteria agree on which experts to keep, against how many they keep."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from slimwise.report.figures.style import (
    COLUMN_WIDTH_IN,
    CRITERION_COLOURS,
    GREY,
    house_style,
    label_shares,
    note_instead,
)
from slimwise.report.labels import CRITERION_LABELS

_SHIFT_OCTAVES = 0.04
"""Sideways distance between pairs at one m', so that their bars do not cover each other."""


def draw_keep_set_overlap(overlap: pd.DataFrame) -> Figure:
    """A line per pair of criteria, from the keep_set_overlap table.

    Points are means over layers, bars reach from the least to the greatest layer; the dashed
    line is what two random keep sets share. A note stands in for an empty table.
    """
    with house_style():
        figure = Figure(figsize=(COLUMN_WIDTH_IN, 2.6), layout="constrained")
        axes = figure.subplots()
        axes.set(xlabel="experts kept per layer (share of all)", ylabel="shared experts (Jaccard)")
        axes.set_ylim(0, 1.03)
        if overlap.empty:
            note_instead(axes, "one criterion: no pair")
            return figure
        pairs = overlap.groupby(["criterion_a", "criterion_b"], sort=False)
        for index, (_, rows) in enumerate(pairs):
            _draw_pair(axes, rows, shift=_SHIFT_OCTAVES * (index - (len(pairs) - 1) / 2))
        _draw_chance(axes, overlap)
        figure.legend(loc="outside upper center", ncols=2)
    return figure


def chance_jaccard(num_kept: np.ndarray, num_experts: int) -> np.ndarray:
    """Jaccard of two random keep sets with the expected number of shared experts, m'^2 / m."""
    share = num_kept / num_experts
    return share / (2 - share)


def _draw_pair(axes: Axes, rows: pd.DataFrame, shift: float) -> None:
    first, second = rows["criterion_a"].iloc[0], rows["criterion_b"].iloc[0]
    counts = rows["num_kept"] * 2.0**shift
    axes.vlines(counts, rows["jaccard_min"], rows["jaccard_max"], color=GREY, linewidth=1.0)
    axes.plot(
        counts,
        rows["jaccard_mean"],
        label=f"{CRITERION_LABELS[first]} and {CRITERION_LABELS[second]}",
        color=GREY,
        linewidth=1.0,
        marker="o",
        markersize=7,
        fillstyle="left",
        markerfacecolor=CRITERION_COLOURS[first],
        markerfacecoloralt=CRITERION_COLOURS[second],
        markeredgecolor="white",
    )


def _draw_chance(axes: Axes, overlap: pd.DataFrame) -> None:
    num_experts = int(overlap["num_experts"].iloc[0])
    counts = np.linspace(overlap["num_kept"].min(), overlap["num_kept"].max(), 100)
    line = {"color": GREY, "linestyle": (0, (4, 2)), "linewidth": 1.0, "zorder": 1}
    axes.plot(counts, chance_jaccard(counts, num_experts), label="random keep sets", **line)
    label_shares(axes, sorted(overlap["num_kept"].unique()), num_experts)
