"""Accuracy against output length of every decoder. SlimWise, figure 3b for all criteria."""

import math
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from slimwise.core.vocabulary import ServingMode
from slimwise.report.figures.lengths_axis import set_length_axis
from slimwise.report.figures.style import (
    DEPLOYMENT_OPACITIES,
    FULL_LINE,
    MODE_LINES,
    PAGE_WIDTH_IN,
    arm_handle,
    arm_marker,
    house_style,
    note_figure,
    set_panel_title,
)
from slimwise.report.labels import CRITERION_LABELS, benchmark_label
from slimwise.report.order import NO_CRITERION
from slimwise.report.selection import reported

_ROW_HEIGHT_IN = 1.6
_SURROUND_HEIGHT_IN = 1.0
_ARM = ["mode", "distilled", "deployment"]
_LARGEST = 1.15
_TAIL: dict[str, Any] = {"linewidth": 0.8, "alpha": 0.5}


def draw_length_accuracy(accuracy: pd.DataFrame) -> Figure:
    """One panel per criterion (rows) and benchmark (columns), from the accuracy table.

    A path per arm leads from the most to the fewest kept experts; points are medians of the
    length, the smaller the fewer experts, and thin lines reach to its 90th percentile. The full
    decoder is where the dashed lines cross. A note stands in for a study that prunes nothing.
    """
    rows = reported(accuracy)
    pruned = rows[rows["criterion"] != NO_CRITERION]
    criteria, benchmarks = list(pruned["criterion"].unique()), list(rows["benchmark"].unique())
    with house_style():
        if pruned.empty:
            return note_figure("no pruned decoder in this study")
        size = (PAGE_WIDTH_IN, _ROW_HEIGHT_IN * len(criteria) + _SURROUND_HEIGHT_IN)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(
            len(criteria), len(benchmarks), sharex=True, sharey=True, squeeze=False
        )
        for criterion, line in zip(criteria, grid, strict=True):
            line[0].set_ylabel(f"{CRITERION_LABELS[criterion]}: accuracy (%)")
            for benchmark, axes in zip(benchmarks, line, strict=True):
                on_benchmark = rows[rows["benchmark"] == benchmark]
                _draw_panel(axes, on_benchmark[on_benchmark["criterion"] == criterion])
                _draw_full(axes, on_benchmark[on_benchmark["criterion"] == NO_CRITERION])
        for benchmark, axes in zip(benchmarks, grid[0], strict=True):
            set_panel_title(axes, benchmark_label(benchmark), len(benchmarks))
        _finish(figure, grid[0, 0], rows)
    return figure


def _draw_panel(axes: Axes, rows: pd.DataFrame) -> None:
    for arm, path in rows.groupby(_ARM, sort=False):
        mode, distilled, deployment = map(str, arm)
        opacity = DEPLOYMENT_OPACITIES[deployment]
        marker = arm_marker(str(path["criterion"].iloc[0]), mode, distilled)
        medians, accuracies = path["length_p50_tokens"], path["accuracy_mean"]
        axes.plot(medians, accuracies, color=marker["color"], alpha=opacity, **_line(mode))
        axes.hlines(accuracies, medians, path["length_p90_tokens"], color=marker["color"], **_TAIL)
        for row in path.to_dict("records"):
            size = marker["markersize"] * _relative_size(row["num_kept"], rows["num_kept"])
            place = (row["length_p50_tokens"], row["accuracy_mean"])
            axes.plot(*place, alpha=opacity, **{**marker, "markersize": size})


def _relative_size(num_kept: int, all_counts: pd.Series) -> float:
    """Of a marker: the area goes with the number of kept experts."""
    return _LARGEST * math.sqrt(num_kept / all_counts.max())


def _draw_full(axes: Axes, rows: pd.DataFrame) -> None:
    for row in rows.to_dict("records"):
        axes.axhline(row["accuracy_mean"], zorder=1, **FULL_LINE)
        axes.axvline(row["length_p50_tokens"], zorder=1, **FULL_LINE)


def _line(mode: str) -> dict[str, Any]:
    is_full = mode == ServingMode.FULL
    return FULL_LINE if is_full else {"linestyle": MODE_LINES[mode], "linewidth": 0.8}


def _finish(figure: Figure, axes: Axes, rows: pd.DataFrame) -> None:
    """Scales that all panels share, their labels, and the legend of the arms."""
    lengths = pd.concat([rows["length_p50_tokens"], rows["length_p90_tokens"]])
    set_length_axis(axes, lengths, rows["benchmark"].nunique())
    axes.set_ylim(-0.06, 1.08)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))
    figure.supxlabel("output length (tokens): median, and thin to the 90th percentile")
    arms = rows[_ARM].drop_duplicates().to_numpy().tolist()
    handles = [arm_handle(*arm, **_line(arm[0])) for arm in arms]
    counts = sorted(rows.loc[rows["criterion"] != NO_CRITERION, "num_kept"].unique(), reverse=True)
    sizes = f"large to small: {', '.join(map(str, counts))} experts kept"
    handles.append(Line2D([], [], label=sizes, linestyle=""))
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 4))
