"""How far two criteria agree on which experts to keep, by how many they keep and by layer."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from slimwise.report.figures.style import (
    COLUMN_WIDTH_IN,
    CRITERION_COLOURS,
    GREY,
    PAGE_WIDTH_IN,
    house_style,
    label_shares,
    note_figure,
    note_instead,
    set_panel_title,
)
from slimwise.report.labels import CRITERION_LABELS

_SHIFT_OCTAVES = 0.04
"""Sideways distance between pairs at one m', so that their bars do not cover each other."""
_HEIGHT_IN = 2.6
_PAIR = ["criterion_a", "criterion_b"]
_CHANCE: dict[str, Any] = {
    "label": "random keep sets",
    "color": GREY,
    "linestyle": (0, (4, 2)),
    "linewidth": 1.0,
    "zorder": 1,
}
_NO_PAIR = "one criterion: no pair"


def draw_keep_set_overlap(overlap: pd.DataFrame) -> Figure:
    """A line per pair of criteria, from the keep_set_overlap table.

    Points are means over layers, bars reach from the least to the greatest layer; the dashed
    line is what two random keep sets share. A note stands in for an empty table.
    """
    with house_style():
        figure = Figure(figsize=(COLUMN_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        axes = figure.subplots()
        axes.set(xlabel="experts kept per layer (share of all)", ylabel="shared experts (Jaccard)")
        axes.set_ylim(-0.03, 1.03)
        if overlap.empty:
            note_instead(axes, _NO_PAIR)
            return figure
        pairs = overlap.groupby(_PAIR, sort=False)
        for index, (_, rows) in enumerate(pairs):
            _draw_pair(axes, rows, shift=_SHIFT_OCTAVES * (index - (len(pairs) - 1) / 2))
        _draw_chance(axes, overlap)
        figure.legend(loc="outside upper center", ncols=2)
    return figure


def draw_overlap_by_layer(by_layer: pd.DataFrame) -> Figure:
    """A panel for each number of kept experts, from the keep_set_overlap_by_layer table.

    A line per pair of criteria over layers; the dashed line is what two random keep sets share.
    """
    counts = list(by_layer["num_kept"].unique())
    with house_style():
        if not counts:
            return note_figure(_NO_PAIR)
        figure = Figure(figsize=(PAGE_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        panels = figure.subplots(1, len(counts), sharey=True, squeeze=False)[0]
        for axes, num_kept in zip(panels, counts, strict=True):
            rows = by_layer[by_layer["num_kept"] == num_kept]
            num_experts = int(rows["num_experts"].iloc[0])
            for (first, second), line in rows.groupby(_PAIR, sort=False):
                style = _pair_style(str(first), str(second))
                axes.plot(line["layer"], line["jaccard"], markersize=7, **style)
            axes.axhline(chance_jaccard(num_kept, num_experts), **_CHANCE)
            axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
            set_panel_title(axes, f"{num_kept:g} of {num_experts} kept", len(counts))
        panels[0].set_ylabel("shared experts (Jaccard)")
        panels[0].set_ylim(-0.03, 1.03)
        figure.supxlabel("MoE layer")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=4)
    return figure


def chance_jaccard(num_kept: Any, num_experts: int) -> Any:
    """Jaccard of two random keep sets with the expected number of shared experts, m'^2 / m.

    num_kept is a number or an array of them, and so is what comes back.
    """
    share = num_kept / num_experts
    return share / (2 - share)


def _draw_pair(axes: Axes, rows: pd.DataFrame, shift: float) -> None:
    counts = rows["num_kept"] * 2.0**shift
    axes.vlines(counts, rows["jaccard_min"], rows["jaccard_max"], color=GREY, linewidth=1.0)
    style = _pair_style(*rows[_PAIR].iloc[0])
    axes.plot(counts, rows["jaccard_mean"], markersize=7, **style)


def _pair_style(first: str, second: str) -> dict[str, Any]:
    """A marker whose halves have the colours of the two criteria."""
    return {
        "label": f"{CRITERION_LABELS[first]} and {CRITERION_LABELS[second]}",
        "color": GREY,
        "linewidth": 1.0,
        "marker": "o",
        "fillstyle": "left",
        "markerfacecolor": CRITERION_COLOURS[first],
        "markerfacecoloralt": CRITERION_COLOURS[second],
        "markeredgecolor": "white",
    }


def _draw_chance(axes: Axes, overlap: pd.DataFrame) -> None:
    num_experts = int(overlap["num_experts"].iloc[0])
    counts = np.linspace(overlap["num_kept"].min(), overlap["num_kept"].max(), 100)
    axes.plot(counts, chance_jaccard(counts, num_experts), **_CHANCE)
    label_shares(axes, sorted(overlap["num_kept"].unique()), num_experts)
