"""What prefilling with all experts repairs without training. SlimWise, figures 3 and 5."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from slimwise.core.vocabulary import Decoding, Distillation, ServingMode
from slimwise.report.figures.lengths_axis import set_length_axis
from slimwise.report.figures.style import (
    FULL_LINE,
    GREY,
    PAGE_WIDTH_IN,
    arm_handle,
    arm_marker,
    house_style,
    note_figure,
    set_panel_title,
)
from slimwise.report.labels import CRITERION_LABELS, benchmark_label, decoder_label
from slimwise.report.order import NO_CRITERION
from slimwise.report.selection import at_half, of_leading_criterion, once_deployed
from slimwise.report.settings import Settings, by_setting, setting_of
from slimwise.report.statistics.answers import by_item_and_run, item_weights
from slimwise.report.statistics.bootstrap import Bootstrap, mean_interval

_MODES = (ServingMode.FULL, ServingMode.PRUNED, ServingMode.SLIMWISE)
_SIDEWAYS = {ServingMode.PRUNED: -0.14, ServingMode.SLIMWISE: 0.14}
_SPREAD = [0.1, 0.25, 0.5, 0.75, 0.9]
_ROW_HEIGHT_IN = 1.7
_SURROUND_HEIGHT_IN = 1.1

Row = dict[Any, Any]


def draw_training_free(
    accuracy: pd.DataFrame, grades: pd.DataFrame, decoding: Decoding, bootstrap: Bootstrap
) -> Figure:
    """Pruned against slimwise at half of the experts, one column a benchmark.

    Upper row: accuracy by criterion, bars are bootstrap intervals over items. Lower row: the
    leading criterion's accuracy at the lengths of its answers. Of a decoder that is deployed both
    ways the colocated one. A note stands in for a study that never decodes so.
    """
    shown = (accuracy["decoding"] == decoding) & (accuracy["distilled"] == Distillation.NONE)
    rows = at_half(once_deployed(accuracy[shown & accuracy["mode"].isin(_MODES)]))
    with house_style():
        if rows.empty:
            return note_figure(f"no {decoding} answers in this study")
        return _draw(rows, by_setting(grades), bootstrap)


def _draw(rows: pd.DataFrame, settings: Settings, bootstrap: Bootstrap) -> Figure:
    benchmarks = list(rows["benchmark"].unique())
    size = (PAGE_WIDTH_IN, 2 * _ROW_HEIGHT_IN + _SURROUND_HEIGHT_IN)
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(2, len(benchmarks), sharex="row", sharey=True, squeeze=False)
    leading = of_leading_criterion(rows)
    for upper, lower, benchmark in zip(*grid, benchmarks, strict=True):
        on_benchmark = _on(rows, benchmark)
        num_items = settings[setting_of(on_benchmark[0])]["item_id"].nunique()
        title = f"{benchmark_label(benchmark)} (n={num_items})"
        set_panel_title(upper, title, len(benchmarks))
        _draw_criteria(upper, on_benchmark, settings, bootstrap)
        _draw_lengths(lower, _on(leading, benchmark), settings)
    spreads = [_spread(row, settings) for row in _records(leading)]
    set_length_axis(grid[1, 0], pd.concat(spreads), len(benchmarks))
    grid[0, 0].set_ylim(-0.04, 1.06)
    grid[0, 0].yaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))
    last = _records(leading)[-1]
    grid[0, 0].set_ylabel(f"(a) {int(last['num_kept'])} kept: accuracy (%)")
    grid[1, 0].set_ylabel(f"(b) {decoder_label(last['criterion'], last['num_kept'])}: accuracy (%)")
    figure.supxlabel("(b) output length (tokens): median, middle half and middle 80 %")
    figure.legend(handles=_legend(rows, bootstrap.confidence), loc="outside upper center", ncols=4)
    return figure


def _on(rows: pd.DataFrame, benchmark: str) -> list[Row]:
    return _records(rows[rows["benchmark"] == benchmark])


def _records(rows: pd.DataFrame) -> list[Row]:
    return rows.to_dict("records")


def _draw_criteria(axes: Axes, rows: list[Row], settings: Settings, bootstrap: Bootstrap) -> None:
    """A place on the x axis for each criterion, pruned on its left, slimwise on its right."""
    criteria = list(dict.fromkeys(row["criterion"] for row in rows))
    criteria.remove(NO_CRITERION)
    for row in rows:
        mean = row["accuracy_mean"]
        if row["criterion"] == NO_CRITERION:
            axes.axhline(mean, zorder=1, **FULL_LINE)
            continue
        answers = settings[setting_of(row)]
        correct_IR = by_item_and_run(answers, "correct")
        interval = mean_interval(correct_IR, item_weights(answers), bootstrap)
        place = criteria.index(row["criterion"]) + _SIDEWAYS[row["mode"]]
        marker = arm_marker(row["criterion"], row["mode"])
        axes.vlines(place, interval.low, interval.high, color=marker["color"], linewidth=1.0)
        axes.plot(place, mean, linestyle="", **marker)
    axes.set_xticks(range(len(criteria)), [CRITERION_LABELS[name] for name in criteria])
    axes.set_xlim(-0.5, max(len(criteria), 1) - 0.5)
    axes.grid(visible=False, axis="x")


def _draw_lengths(axes: Axes, rows: list[Row], settings: Settings) -> None:
    """Each mode's length distribution as a horizontal bar at the height of its accuracy."""
    for row in rows:
        spread = _spread(row, settings)
        marker = arm_marker(row["criterion"], row["mode"])
        line: dict[str, Any] = {"color": marker["color"], "solid_capstyle": "butt"}
        height = [row["accuracy_mean"]] * 2
        axes.plot(spread[[0.1, 0.9]], height, linewidth=0.8, **line)
        axes.plot(spread[[0.25, 0.75]], height, linewidth=2.6, alpha=0.45, **line)
        axes.plot(spread[0.5], row["accuracy_mean"], **marker)


def _spread(row: Row, settings: Settings) -> pd.Series:
    return settings[setting_of(row)]["completion_tokens"].quantile(_SPREAD)


def _legend(rows: pd.DataFrame, confidence: float) -> list[Line2D]:
    modes = [mode for mode in _MODES[1:] if mode in set(rows["mode"])]
    bar = {"color": GREY, "marker": "|", "markersize": 9, "linestyle": ""}
    return [
        arm_handle(ServingMode.FULL, **FULL_LINE),
        *(arm_handle(mode, linestyle="") for mode in modes),
        Line2D([], [], label=f"(a) {confidence:.0%} interval over items", **bar),
    ]
