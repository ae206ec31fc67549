"""Decode throughput of a GPU against what each user gets. SlimWise, figure 4."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from slimwise.core.vocabulary import Deployment
from slimwise.report.figures.style import GREY, PAGE_WIDTH_IN, house_style
from slimwise.report.measured.figures.decoder_style import (
    ROUTING_LABELS,
    decoder_label,
    decoder_style,
)
from slimwise.report.measured.throughput import PER_GPU, PER_USER

_HEIGHT_IN = 3.0
_TARGET_LINE: dict[str, Any] = {"color": GREY, "linestyle": (0, (1, 1.5)), "linewidth": 1.0}
_LINE_OF_TEXT = 0.075
"""Height of a line of text, of that of a panel."""


def draw_throughput(
    throughput: pd.DataFrame, ratios: pd.DataFrame, panel_by: Sequence[str] = ("routing",)
) -> Figure:
    """A panel per routing, and per deployment if asked, a curve per decoder, a point per batch.

    The dotted line is the target; crosses on it are interpolated, beside them the ratio to the
    full model.
    """
    named = throughput[list(panel_by)].drop_duplicates().to_numpy()
    shown = [dict(zip(panel_by, map(str, names), strict=True)) for names in named]
    counts = list(throughput["num_kept"].unique())
    with house_style():
        figure = Figure(figsize=(PAGE_WIDTH_IN, _HEIGHT_IN), layout="constrained")
        panels = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
        for axes, panel in zip(panels, shown, strict=True):
            axes.set_title(_title(panel))
            draw_curves(axes, _rows_of(throughput, panel), counts)
            mark_target(axes, _rows_of(ratios, panel))
        label_panels(figure, panels)
    return figure


def _title(panel: Mapping[str, str]) -> str:
    routing = ROUTING_LABELS.get(panel["routing"], panel["routing"])
    is_apart = panel.get("deployment") == Deployment.DISAGGREGATED
    return f"{routing}, prefill apart" if is_apart else routing


def _rows_of(rows: pd.DataFrame, panel: Mapping[str, str]) -> pd.DataFrame:
    return rows[(rows[list(panel)] == pd.Series(panel)).all(axis=1)]


def label_panels(figure: Figure, panels: Sequence[Axes]) -> None:
    """Axes of panels that share them, and one legend of all their curves."""
    panels[0].set_ylabel("decode throughput (tokens/s/GPU)")
    panels[0].yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    panels[0].set_ylim(0, None)
    figure.supxlabel("speed for each user (tokens/s/user)")
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=len(handles))


def draw_curves(axes: Axes, rows: pd.DataFrame, counts: list[int]) -> None:
    """A curve for each kind of weights and number of experts, of the first engine that has them.

    Others would be told apart by nothing.
    """
    for (weights, num_kept), curve in rows.groupby(["weights", "num_kept"], sort=False):
        weights, num_kept = str(weights), int(str(num_kept))
        points = curve[curve["engine"] == curve["engine"].iloc[0]]
        style = decoder_style(num_kept, weights, counts)
        label = decoder_label(num_kept, weights)
        axes.plot(points[PER_USER], points[PER_GPU], label=label, **style)


def mark_target(axes: Axes, ratios: pd.DataFrame) -> None:
    """The line of the target, and where each curve crosses it."""
    if ratios.empty:
        return
    target = ratios["target_tokens_per_s_per_user"].iloc[0]
    axes.axvline(target, zorder=1, **_TARGET_LINE)
    full = ratios[f"full_{PER_GPU}"].iloc[0]
    crossings = [full, *ratios[PER_GPU]]
    axes.plot([target] * len(crossings), crossings, "x", color="black", markersize=5, zorder=4)
    _list_ratios(axes, ratios, f"throughput over full at {target:g}:")


def _list_ratios(axes: Axes, ratios: pd.DataFrame, heading: str) -> None:
    """The ratios in the empty corner of the panel; small text in a curve's colour is too pale."""
    place = {"ha": "right", "va": "top", "fontsize": 7, "transform": axes.transAxes}
    axes.text(0.99, 0.98, heading, **place)
    ordered = ratios.sort_values(["num_kept", "ratio"], ascending=[True, False])
    for line, row in enumerate(ordered.to_dict("records"), start=1):
        label = decoder_label(row["num_kept"], row["weights"])
        axes.text(0.99, 0.98 - line * _LINE_OF_TEXT, f"{label}: {row['ratio']:.2f}", **place)
