"""How calibration tokens spread over experts, layer by layer.

Legend: L MoE layers, E experts.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import Collection, QuadMesh
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from slimwise.errors import ArtifactError
from slimwise.report.figures.style import (
    CRITERION_COLOURS,
    GREY,
    PAGE_WIDTH_IN,
    house_style,
    set_panel_title,
)
from slimwise.report.labels import benchmark_label
from slimwise.report.order import NO_CRITERION

_LAYER_HEIGHT_IN = 0.16
_MAX_HEIGHT_IN = 5.0
_SURROUND_HEIGHT_IN = 1.3
_COMPONENT_COLUMNS = 3
_LOAD_TICKS = {1 / 8: "1/8", 1 / 4: "1/4", 1 / 2: "1/2", 1: "1", 2: "2", 4: "4", 8: "8"}


def draw_expert_load(scores: pd.DataFrame) -> Figure:
    """A heat map of each layer's loads, experts from the most to the least loaded.

    A load is an expert's share of the routed tokens over the share it would have if all were
    equal. Beside it the effective number of experts, exp(entropy of the shares).
    """
    shares_LE = load_shares(scores)
    num_layers, num_experts = shares_LE.shape
    with house_style():
        figure = Figure(figsize=(PAGE_WIDTH_IN, _height_in(num_layers)), layout="constrained")
        heat, effective = figure.subplots(1, 2, sharey=True, width_ratios=(4, 1))
        image = _draw_loads(heat, -np.sort(-num_experts * shares_LE, axis=1))
        heat.set(xlabel="expert, by load within its layer", ylabel="MoE layer")
        _add_scale(figure, image, [heat])
        _draw_effective(effective, effective_experts(shares_LE), num_experts)
    return figure


def draw_load_by_component(components: Mapping[str, np.ndarray]) -> Figure:
    """A heat map for each component of the calibration mixture, from its tokens_LE.

    In all of them the experts of a layer stand in one order, by their load over all components
    together, so that an expert that serves one component is a dark cell in one map alone.
    """
    order_LE = np.argsort(-sum(components.values()), axis=1, kind="stable")
    num_rows = -(-len(components) // _COMPONENT_COLUMNS)
    num_columns = min(len(components), _COMPONENT_COLUMNS)
    with house_style():
        height = num_rows * _height_in(len(order_LE))
        figure = Figure(figsize=(PAGE_WIDTH_IN, height), layout="constrained")
        grid = figure.subplots(num_rows, num_columns, sharex=True, sharey=True, squeeze=False)
        for axes in grid.flat[len(components) :]:
            axes.set_visible(False)
        for axes, (name, tokens_LE) in zip(grid.flat, components.items(), strict=False):
            loads_LE = tokens_LE.shape[1] * _shares(tokens_LE)
            _draw_loads(axes, np.take_along_axis(loads_LE, order_LE, axis=1))
            set_panel_title(axes, benchmark_label(name), num_columns)
        for axes in grid[:, 0]:
            axes.set_ylabel("MoE layer")
        figure.supxlabel("expert, by load over all components within its layer")
        _add_scale(figure, grid[0, 0].collections[0], grid)
    return figure


def load_shares(scores: pd.DataFrame) -> np.ndarray:
    """Each expert's share of its layer's routed tokens, [L, E]; rows sum to 1."""
    return _shares(scores.pivot(index="layer", columns="expert", values="tokens").to_numpy(float))


def effective_experts(shares_LE: np.ndarray) -> np.ndarray:
    """exp(entropy) of each layer's shares, [L]: E if all are equal, 1 if one takes everything."""
    logs_LE = np.log(np.where(shares_LE > 0, shares_LE, 1.0))
    return np.exp(-(shares_LE * logs_LE).sum(axis=1))


def _shares(tokens_LE: np.ndarray) -> np.ndarray:
    totals_L = tokens_LE.sum(axis=1)
    if not np.all(totals_L > 0):
        raise ArtifactError(
            f"expert loads: layer {int(np.argmin(totals_L > 0))} has no routed tokens, or lacks "
            "experts. Run the collect_stats and score_experts rules again."
        )
    return tokens_LE / totals_L[:, None]


def _height_in(num_layers: int) -> float:
    return min(_SURROUND_HEIGHT_IN + _LAYER_HEIGHT_IN * num_layers, _MAX_HEIGHT_IN)


def _draw_loads(axes: Axes, loads_LE: np.ndarray) -> QuadMesh:
    num_layers, num_experts = loads_LE.shape
    image = axes.pcolormesh(
        np.arange(num_experts + 1) + 0.5,
        np.arange(num_layers + 1) - 0.5,
        loads_LE,
        norm=LogNorm(min(_LOAD_TICKS), max(_LOAD_TICKS), clip=True),
        cmap="RdBu_r",
        rasterized=True,
    )
    axes.set_ylim(num_layers - 0.5, -0.5)
    axes.yaxis.set_major_locator(MaxNLocator(10, integer=True))
    axes.grid(visible=False)
    return image


def _add_scale(figure: Figure, image: Collection, panels: np.ndarray | list[Axes]) -> None:
    bar = figure.colorbar(image, ax=panels, location="top", aspect=50, pad=0.02, extend="both")
    bar.set_ticks(list(_LOAD_TICKS), labels=list(_LOAD_TICKS.values()))
    bar.minorticks_off()
    bar.set_label("load (tokens routed to the expert / layer's mean)")


def _draw_effective(axes: Axes, effective_L: np.ndarray, num_experts: int) -> None:
    colour = CRITERION_COLOURS[NO_CRITERION]
    axes.barh(np.arange(len(effective_L)), effective_L, height=0.7, color=colour)
    axes.axvline(num_experts, color=GREY, linestyle=(0, (4, 2)), linewidth=0.8)
    axes.set(xlabel=f"effective experts\n(of {num_experts})", xlim=(0, num_experts * 1.05))
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
