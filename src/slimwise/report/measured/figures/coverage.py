"""Experts that a step reads, and prefill speed by experts in use. SlimWise, figure 2."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, PercentFormatter

from slimwise.core.traffic import expected_distinct_experts
from slimwise.core.vocabulary import Phase
from slimwise.report.figures.style import COLUMN_WIDTH_IN, GREY, PAGE_WIDTH_IN, house_style
from slimwise.report.measured.figures.decoder_style import (
    ROUTING_LABELS,
    decoder_style,
    kept_style,
)

_HEIGHT_IN = 3.0
_FILLS: dict[str, Any] = {"uniform": "full", "skewed": "none", "real": "full"}
_CURVE_POINTS = 200
_HEADROOM = 1.15


def draw_coverage(coverage: pd.DataFrame, prefill: pd.DataFrame) -> Figure:
    """Share of its pool that a decode step reads against batch, and prefill throughput.

    Markers are measured; lines are m (1 - (1 - k/m)^B) / m. A step of prefill reads every expert.
    """
    decode = coverage[coverage["phase"] == Phase.DECODE]
    counts = sorted({*decode["num_kept"], *prefill["num_kept"]}, reverse=True)
    with house_style():
        figure = Figure(figsize=(PAGE_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        shares, speeds = figure.subplots(1, 2, width_ratios=(3, 2))
        _draw_shares(shares, decode, counts)
        _draw_prefill(speeds, prefill, counts)
        figure.legend(handles=_handles(decode, counts), loc="outside upper center", ncols=4)
    return figure


def draw_decode_coverage(coverage: pd.DataFrame) -> Figure:
    """The share of its pool that a decode step reads alone, against batch."""
    decode = coverage[coverage["phase"] == Phase.DECODE]
    counts = sorted(set(decode["num_kept"]), reverse=True)
    with house_style():
        figure = Figure(figsize=(COLUMN_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        _draw_shares(figure.subplots(), decode, counts)
        figure.legend(handles=_handles(decode, counts), loc="outside upper center", ncols=3)
    return figure


def _draw_shares(axes: Axes, decode: pd.DataFrame, counts: list[int]) -> None:
    batches = np.geomspace(decode["batch"].min(), decode["batch"].max(), _CURVE_POINTS)
    top_k = int(decode["top_k"].iloc[0])
    for (num_kept, routing), rows in decode.groupby(["num_kept", "routing"], sort=False):
        pool = int(str(num_kept))
        style = kept_style(pool, counts)
        expected = [expected_distinct_experts(pool, top_k, batch) / pool for batch in batches]
        axes.plot(batches, expected, color=style["color"], linewidth=1.0)
        fill = _FILLS.get(str(routing), "full")
        axes.plot(rows["batch"], rows["pool_share_measured"], fillstyle=fill, ls="", **style)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted(decode["batch"].unique()))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))
    axes.set(title="decode", xlabel="sequences in a step", ylabel="experts read (% of pool)")
    axes.set_ylim(0, 1.05)


def _draw_prefill(axes: Axes, prefill: pd.DataFrame, counts: list[int]) -> None:
    for row in prefill.drop_duplicates(["num_kept", "weights"]).to_dict("records"):
        style = decoder_style(row["num_kept"], row["weights"], counts)
        axes.plot(row["num_kept"], row["prefill_tokens_per_s"] / 1e3, **style)
    axes.set_title("prefill (open: exported checkpoint)")
    axes.set(xlabel="experts that prefill may use", ylabel="thousand tokens/s")
    axes.set_xticks(sorted(prefill["num_kept"].unique()))
    axes.set_ylim(0, _HEADROOM * prefill["prefill_tokens_per_s"].max() / 1e3)


def _handles(decode: pd.DataFrame, counts: list[int]) -> list[Line2D]:
    pools = [
        Line2D([], [], ls="", label=f"{count} experts", **kept_style(count, counts))
        for count in counts
    ]
    marker: dict[str, Any] = {"color": GREY, "marker": "o", "linestyle": ""}
    routings = [
        Line2D([], [], label=ROUTING_LABELS[name], fillstyle=_FILLS[name], **marker)
        for name in decode["routing"].unique()
    ]
    return [*pools, *routings, Line2D([], [], color=GREY, linewidth=1.0, label="expected")]
