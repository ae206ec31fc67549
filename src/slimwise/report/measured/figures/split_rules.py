"""Uniform split points against s = 0, by pool and length of training. SlimWise, Distil."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from slimwise.core.vocabulary import Distillation, ServingMode
from slimwise.report.figures.style import FULL_LINE, GREY, PAGE_WIDTH_IN, arm_marker, house_style
from slimwise.report.labels import benchmark_label, decoder_label

_HEIGHT_IN = 3.8
_SETTING = ["criterion", "num_kept", "steps", "decoding"]
_SIDEWAYS = {Distillation.UNIFORM: -0.22, Distillation.ZERO: 0.22}
_RULE_LABELS = {Distillation.UNIFORM: "s uniform", Distillation.ZERO: "s = 0"}


def draw_split_rules(table: pd.DataFrame) -> Figure:
    """A column per pool, number of steps and decoding: accuracy above, difference of rules below.

    Bars are one standard deviation over seeds above and the interval of the difference below; a
    single seed has none.
    """
    settings = list(table.groupby(_SETTING, sort=False))
    with house_style():
        figure = Figure(figsize=(PAGE_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        grid = figure.subplots(
            2, len(settings), sharex=True, sharey="row", squeeze=False, height_ratios=(3, 2)
        )
        for column, (setting, rows) in zip(grid.T, settings, strict=True):
            _draw_setting(column, setting, rows)
        grid[0, 0].set_ylabel("accuracy (%)")
        grid[1, 0].set_ylabel("difference (points)")
        for axes in grid[:, 0]:
            axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
        handles, labels = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure


def _draw_setting(column: Any, setting: Any, rows: pd.DataFrame) -> None:
    criterion, num_kept, steps, decoding = setting
    seeds = rows["seeds"].iloc[0]
    plural = "seed" if seeds == 1 else "seeds"
    how = f"{steps} steps\n{seeds} {plural}\n{decoding}"
    column[0].set_title(f"{decoder_label(criterion, num_kept)}\n{how}")
    _draw_accuracy(column[0], str(criterion), rows)
    _draw_difference(column[1], rows)
    names = [benchmark_label(name).removeprefix("mini ") for name in rows["benchmark"]]
    column[1].set_xticks(np.arange(len(rows)), names, rotation="vertical")
    column[1].set_xlim(-0.5, len(rows) - 0.5)


def _draw_accuracy(axes: Axes, criterion: str, rows: pd.DataFrame) -> None:
    places = np.arange(len(rows))
    width = 0.7
    ends = (places - width / 2, places + width / 2)
    axes.hlines(rows["accuracy_full"], *ends, label="full", **FULL_LINE)
    axes.hlines(
        rows["accuracy_undistilled"], *ends, color=GREY, linewidth=1.0, label="not distilled"
    )
    for rule, label in _RULE_LABELS.items():
        axes.errorbar(
            places + _SIDEWAYS[rule],
            rows[f"accuracy_{rule}_mean"],
            yerr=rows[f"accuracy_{rule}_std"].fillna(0),
            linestyle="",
            capsize=2,
            label=label,
            **arm_marker(criterion, ServingMode.SLIMWISE, rule),
        )
    axes.set_ylim(-0.03, 1.05)


def _draw_difference(axes: Axes, rows: pd.DataFrame) -> None:
    places = np.arange(len(rows))
    axes.axhline(0, color=GREY, linewidth=0.8, zorder=1)
    axes.vlines(places, rows["difference_low"], rows["difference_high"], color="black", lw=1.2)
    axes.plot(places, rows["difference_mean"], "o", color="black", markersize=4)
