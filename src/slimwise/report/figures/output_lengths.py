"""How long answers are, by decoder and benchmark. SlimWise, figures 3b and 5."""

from itertools import product

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from slimwise.core.vocabulary import DecoderId, Deployment, ServingMode
from slimwise.report.figures.lengths_axis import set_length_axis
from slimwise.report.figures.panels import panels_by_setting
from slimwise.report.figures.style import CRITERION_COLOURS, GREY, house_style
from slimwise.report.labels import arm_label, decoder_label
from slimwise.report.order import NO_CRITERION, decoders_in_table_order

Ridge = tuple[DecoderId, ServingMode, Deployment]

_RIDGE = ["decoder", "mode", "deployment"]
_NUM_POINTS = 256
_BANDWIDTH_OCTAVES = 0.15
_RIDGE_HEIGHT = 0.85
"""Of the highest density, in distances between decoders."""
_RIDGE_HEIGHT_IN = 0.22
_TICK = {"marker": "|", "markersize": 9, "markeredgewidth": 1.4, "linestyle": ""}
_P50 = {**_TICK, "color": "black"}
_P90 = {"marker": "v", "markersize": 4, "color": "black", "linestyle": ""}
_BUDGET = {"color": GREY, "linestyle": (0, (4, 2)), "linewidth": 0.8}


def draw_output_lengths(grades: pd.DataFrame) -> Figure:
    """One panel per decoding (rows) and benchmark (columns), a density per decoder, mode and
    deployment.

    Marks are quantiles over all answers of all runs. Densities show the answers that ended by
    themselves, at one scale a panel: the more of a decoder's answers the budget cut, the flatter
    its density and the larger the share printed beside it.
    """
    ridges = _ridges(grades)
    height = _RIDGE_HEIGHT_IN * (len(ridges) + 1)
    with house_style():
        figure, panels = panels_by_setting(grades, row_label="{decoding}", panel_height_in=height)
        for axes, rows in panels:
            _draw_panel(axes, rows, ridges)
        set_length_axis(panels[0][0], grades["completion_tokens"], grades["benchmark"].nunique())
        _draw_legend(figure)
    return figure


def _ridges(grades: pd.DataFrame) -> list[Ridge]:
    present = set(grades[_RIDGE].itertuples(index=False, name=None))
    ridges = product(decoders_in_table_order(grades["decoder"]), ServingMode, Deployment)
    return [ridge for ridge in ridges if tuple(map(str, ridge)) in present]


def _draw_legend(figure: Figure) -> None:
    handles = [
        Line2D([], [], label="p50", **_P50),
        Line2D([], [], label="p90", **_P90),
        Line2D([], [], label="budget, share of answers cut", **_BUDGET),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    figure.supxlabel("output length (tokens)")


def _draw_panel(axes: Axes, rows: pd.DataFrame, ridges: list[Ridge]) -> None:
    log_lengths = np.log2(rows["completion_tokens"].clip(lower=1))
    grid = np.linspace(log_lengths.min() - 0.5, log_lengths.max() + 0.5, _NUM_POINTS)
    by_ridge = {
        ridge: rows[(rows[_RIDGE] == list(map(str, ridge))).all(axis=1)] for ridge in ridges
    }
    densities = {ridge: _density(answers, grid) for ridge, answers in by_ridge.items()}
    peak = max(density.max() for density in densities.values()) or 1.0
    levels = dict(zip(ridges, range(len(ridges) - 1, -1, -1), strict=True))
    for ridge, level in levels.items():
        colour = CRITERION_COLOURS[ridge[0].criterion or NO_CRITERION]
        top = level + _RIDGE_HEIGHT * densities[ridge] / peak
        axes.fill_between(2.0**grid, level, top, color=colour, alpha=0.6, linewidth=0)
        if not by_ridge[ridge].empty:
            _mark_quantiles(axes, by_ridge[ridge], level)
    cut = rows.loc[rows["hit_budget"], "completion_tokens"]
    if not cut.empty:
        axes.axvline(cut.max(), **_BUDGET)
    axes.set_yticks(list(levels.values()), [_label(*ridge) for ridge in ridges])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-0.15, len(ridges))


def _density(answers: pd.DataFrame, grid: np.ndarray) -> np.ndarray:
    """Share of all answers per octave around each log2 length, of those that were not cut."""
    ended = answers.loc[~answers["hit_budget"], "completion_tokens"].clip(lower=1)
    distances = (grid[:, None] - np.log2(ended.to_numpy())[None, :]) / _BANDWIDTH_OCTAVES
    kernels = np.exp(-0.5 * distances**2) / (_BANDWIDTH_OCTAVES * np.sqrt(2 * np.pi))
    return kernels.sum(axis=1) / max(len(answers), 1)


def _mark_quantiles(axes: Axes, answers: pd.DataFrame, level: int) -> None:
    lengths = answers["completion_tokens"]
    axes.plot(lengths.quantile(0.5), level + 0.2, **_P50)
    axes.plot(lengths.quantile(0.9), level + 0.2, **_P90)
    cut_share = answers["hit_budget"].mean()
    if cut_share > 0:
        place = {"xycoords": ("axes fraction", "data"), "va": "bottom", "fontsize": 6}
        axes.annotate(f"{cut_share:.0%}", (1.01, level), color=GREY, **place)


def _label(decoder: DecoderId, mode: ServingMode, deployment: Deployment) -> str:
    pool = decoder_label(decoder.criterion or NO_CRITERION, decoder.num_kept or 0)
    if decoder.is_full:
        return pool
    return f"{pool} {arm_label(mode, decoder.distilled, deployment)}"
