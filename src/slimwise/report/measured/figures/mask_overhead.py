"""What the plugin costs a decode step, by batch."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from slimwise.report.figures.style import GREY, PAGE_WIDTH_IN, house_style
from slimwise.report.measured.figures.decoder_style import ROUTING_LABELS

_HEIGHT_IN = 2.5
_PARTS = {"": ("#0072b2", "o", "mask"), "coverage_": ("#d55e00", "s", "mask and coverage")}
_FILLS: dict[str, dict[str, Any]] = {"uniform": {}, "skewed": {"markerfacecolor": "white"}}
_LINES = {"uniform": "-", "skewed": "--"}
_SHIFTS = {"uniform": 0.96, "skewed": 1.04}


def draw_mask_overhead(overheads: pd.DataFrame) -> Figure:
    """Overhead in ms and as a share of the step without the plugin, bars one standard error."""
    with house_style():
        figure = Figure(figsize=(PAGE_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        times, shares = figure.subplots(1, 2)
        for routing, rows in overheads.groupby("routing", sort=False):
            for part in _PARTS:
                _draw_part(times, rows, str(routing), part, pd.Series(1.0, index=rows.index))
                _draw_part(shares, rows, str(routing), part, rows["step_ms_full"])
        times.set_ylabel("overhead (ms a step)")
        shares.set_ylabel("overhead (% of the step)")
        shares.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=""))
        for axes in (times, shares):
            _set_batch_axis(axes, overheads["batch"])
        handles, labels = times.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)
    return figure


def _draw_part(axes: Axes, rows: pd.DataFrame, routing: str, part: str, unit: pd.Series) -> None:
    colour, marker, label = _PARTS[part]
    axes.errorbar(
        rows["batch"] * _SHIFTS.get(routing, 1.0),
        rows[f"{part}overhead_ms"] / unit,
        yerr=rows[f"{part}overhead_error_ms"] / unit,
        label=f"{label}, {ROUTING_LABELS.get(routing, routing)}",
        color=colour,
        marker=marker,
        linestyle=_LINES.get(routing, "-"),
        capsize=2,
        **_FILLS.get(routing, {}),
    )


def _set_batch_axis(axes: Axes, batches: pd.Series) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(batches.unique()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.minorticks_off()
    axes.set_xlabel("sequences in a decode step")
    axes.axhline(0, color=GREY, linewidth=0.6, zorder=1)
    axes.set_ylim(min(0.0, axes.get_ylim()[0]), None)
