"""Accuracy against the number of experts kept, by criterion. SlimWise, figures 3a and 5."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from slimwise.core.vocabulary import Distillation
from slimwise.report.figures.panels import panels_by_setting
from slimwise.report.figures.style import (
    CRITERION_COLOURS,
    DEPLOYMENT_OPACITIES,
    FULL_LINE,
    MODE_LINES,
    arm_marker,
    house_style,
    label_shares,
)
from slimwise.report.labels import CRITERION_LABELS, arm_label
from slimwise.report.order import NO_CRITERION

_LEGEND_COLUMNS = 5
_ARM = ["criterion", "mode", "deployment"]
_SHIFT_OCTAVES = 0.05
"""Sideways distance between criteria at one m', so that equal accuracies do not hide each other."""


def draw_accuracy_by_num_kept(accuracy: pd.DataFrame) -> Figure:
    """One panel per decoding (rows) and benchmark (columns), from the accuracy table.

    A line per criterion, mode and deployment, criteria a little apart, error bars of one standard
    deviation over runs, the full decoder as a level line. Distilled decoders are left out.
    """
    training_free = accuracy[accuracy["distilled"] == Distillation.NONE]
    with house_style():
        figure, panels = panels_by_setting(
            training_free, row_label="accuracy, {decoding} (%)", panel_height_in=1.6
        )
        for axes, rows in panels:
            _draw_panel(axes, rows)
        label_shares(panels[0][0], *_kept_counts(training_free))
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside upper center", ncols=min(len(labels), _LEGEND_COLUMNS)
        )
        figure.supxlabel("experts kept per layer (share of all)")
    return figure


def _draw_panel(axes: Axes, rows: pd.DataFrame) -> None:
    full = rows[rows["criterion"] == NO_CRITERION]
    pruned = rows[rows["criterion"] != NO_CRITERION]
    criteria = list(pruned["criterion"].unique())
    for arm, line in pruned.groupby(_ARM, sort=False):
        criterion, mode, deployment = map(str, arm)
        shift = _SHIFT_OCTAVES * (criteria.index(criterion) - (len(criteria) - 1) / 2)
        axes.errorbar(
            line["num_kept"] * 2.0**shift,
            line["accuracy_mean"],
            yerr=line["accuracy_std"].fillna(0),
            label=f"{CRITERION_LABELS[criterion]} {arm_label(mode, Distillation.NONE, deployment)}",
            linestyle=MODE_LINES[mode],
            alpha=DEPLOYMENT_OPACITIES[deployment],
            capsize=2,
            **arm_marker(criterion, mode),
        )
    for mean, std in full[["accuracy_mean", "accuracy_std"]].fillna(0).to_numpy():
        _draw_full(axes, mean, std)
    axes.set_ylim(-0.03, 1.05)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))


def _draw_full(axes: Axes, mean: float, std: float) -> None:
    colour = CRITERION_COLOURS[NO_CRITERION]
    axes.axhspan(mean - std, mean + std, color=colour, alpha=0.2, linewidth=0)
    axes.axhline(mean, label="full", zorder=1, **FULL_LINE)


def _kept_counts(accuracy: pd.DataFrame) -> tuple[list[int], int]:
    """The numbers of experts that pruned decoders keep, and that of all experts."""
    is_full = accuracy["criterion"] == NO_CRITERION
    counts = sorted(accuracy.loc[~is_full, "num_kept"].unique())
    return counts, int(accuracy.loc[is_full, "num_kept"].iloc[0])
