"""Training curves of distilled decoders. SlimWise, Distil."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from slimwise.core.vocabulary import DecoderId, Distillation
from slimwise.report.figures.style import (
    CRITERION_COLOURS,
    PAGE_WIDTH_IN,
    house_style,
    note_figure,
)
from slimwise.report.labels import decoder_label
from slimwise.report.order import NO_CRITERION, decoders_in_table_order

Logs = Mapping[DecoderId, pd.DataFrame]

_QUANTITIES = {"loss": "loss", "kl": "KL term"}
_RULE_LABELS = {Distillation.UNIFORM: "s uniform", Distillation.ZERO: "s = 0"}
_RULE_LINES: dict[str, Any] = {Distillation.UNIFORM: "-", Distillation.ZERO: (0, (3, 1))}
_WINDOW_SHARE = 0.05
"""Of all steps, averaged in a line."""
_TICKS = (1, 2, 5)
"""Of each power of ten."""
_PANEL_HEIGHT_IN = 1.6
_SURROUND_HEIGHT_IN = 0.9


def draw_distillation(logs: Logs) -> Figure:
    """One column per pool, the loss above and its KL term below; a line per split rule.

    Lines are means over the last twentieth of all steps, dots single steps; n are the tokens that
    the student was trained on, in the order of the legend. A note stands in for a study that
    distils nothing.
    """
    decoders = decoders_in_table_order(map(str, logs))
    pools = list(dict.fromkeys(_pool_label(decoder) for decoder in decoders))
    with house_style():
        if not pools:
            return note_figure("no distilled decoder in this study")
        height = len(_QUANTITIES) * _PANEL_HEIGHT_IN + _SURROUND_HEIGHT_IN
        figure = Figure(figsize=(PAGE_WIDTH_IN, height), layout="constrained")
        shape = (len(_QUANTITIES), len(pools))
        grid = figure.subplots(*shape, sharex=True, sharey="row", squeeze=False)
        for pool, column in zip(pools, grid.T, strict=True):
            _draw_pool(column, pool, [each for each in decoders if _pool_label(each) == pool], logs)
        _label(figure, grid, {decoder.distilled for decoder in decoders})
    return figure


def _pool_label(decoder: DecoderId) -> str:
    return decoder_label(decoder.criterion or NO_CRITERION, decoder.num_kept or 0)


def _draw_pool(column: np.ndarray, pool: str, decoders: list[DecoderId], logs: Logs) -> None:
    tokens = [f"{logs[decoder]['student_tokens'].sum() / 1e6:.2g} M" for decoder in decoders]
    column[0].set_title(f"{pool}\nn = {', '.join(tokens)} tokens")
    for axes, quantity in zip(column, _QUANTITIES, strict=True):
        for decoder in decoders:
            _draw_curve(axes, logs[decoder]["step"], logs[decoder][quantity], decoder)


def _draw_curve(axes: Axes, steps: pd.Series, values: pd.Series, decoder: DecoderId) -> None:
    is_ablation = decoder.distilled is Distillation.ZERO
    criterion = NO_CRITERION if is_ablation else decoder.criterion or NO_CRITERION
    colour = CRITERION_COLOURS[criterion]
    window = max(1, round(_WINDOW_SHARE * len(values)))
    means = values.rolling(window, min_periods=1, center=True).mean()
    axes.plot(steps, values, ".", color=colour, markersize=1.5, alpha=0.25)
    axes.plot(steps, means, color=colour, linestyle=_RULE_LINES[decoder.distilled], linewidth=1.2)


def _label(figure: Figure, grid: np.ndarray, rules: set[Distillation]) -> None:
    for axes, label in zip(grid[:, 0], _QUANTITIES.values(), strict=True):
        axes.set_yscale("log", subs=[])
        axes.yaxis.set_major_locator(LogLocator(subs=_TICKS))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.set_ylabel(f"{label} (nats a token)")
    figure.supxlabel("optimiser step")
    handles = [
        Line2D([], [], color="black", linestyle=_RULE_LINES[rule], label=label)
        for rule, label in _RULE_LABELS.items()
        if rule in rules
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
