"""The look of every figure: one palette, one type size, one way of writing files."""

import logging
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from slimwise.artifacts.atomic import atomic_file
from slimwise.artifacts.captions import Caption, write_captions
from slimwise.core.vocabulary import Criterion, Deployment, Distillation, ServingMode
from slimwise.provenance import current_provenance
from slimwise.report.config import ReportConfig
from slimwise.report.labels import arm_label
from slimwise.report.order import NO_CRITERION

log = logging.getLogger(__name__)

PAGE_WIDTH_IN = 7.0
"""Text width of a two-column page, inches."""

_PAGE_WIDTH_CHARACTERS = 90
"""Of titles."""

COLUMN_WIDTH_IN = 3.4
"""Width of one of its columns, inches."""

_NOTE_HEIGHT_IN = 0.8

GREY = "#6e6e6e"
LIGHT_GREY = "#d9d9d9"

# Okabe and Ito's palette, told apart under colour blindness.
CRITERION_COLOURS: dict[str, str] = {
    NO_CRITERION: "#4d4d4d",
    Criterion.MASS: "#0072b2",
    Criterion.EAN: "#e69f00",
    Criterion.REAP: "#009e73",
    Criterion.FREQUENCY: "#cc79a7",
}
CRITERION_MARKERS: dict[str, str] = {
    NO_CRITERION: "D",
    Criterion.MASS: "o",
    Criterion.EAN: "s",
    Criterion.REAP: "^",
    Criterion.FREQUENCY: "v",
}

FULL_LINE: dict[str, Any] = {
    "color": CRITERION_COLOURS[NO_CRITERION],
    "linestyle": (0, (4, 2)),
    "linewidth": 1.0,
}
"""A level of the full decoder."""

MODE_LINES: dict[str, str] = {
    ServingMode.FULL: "-",
    ServingMode.PRUNED: "--",
    ServingMode.SLIMWISE: "-",
    ServingMode.REVERSE: ":",
}
_MODE_FILLS: dict[str, dict[str, Any]] = {
    ServingMode.FULL: {},
    ServingMode.PRUNED: {"markerfacecolor": "white"},
    ServingMode.SLIMWISE: {},
    ServingMode.REVERSE: {"fillstyle": "left", "markerfacecoloralt": "white"},
}
DEPLOYMENT_OPACITIES: dict[str, float] = {
    Deployment.COLOCATED: 1.0,
    Deployment.DISAGGREGATED: 0.5,
}
_DISTILLED_MARKERS: dict[str, str] = {Distillation.UNIFORM: "*", Distillation.ZERO: "X"}
_DISTILLED_SIZE = 6.5

_RC: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "figure.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LIGHT_GREY,
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": "black",
    "ytick.labelcolor": "black",
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "slimwise",
}

# Fields that would make two drawings of the same data differ.
_TIMELESS_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
    "svg": {"Creator": None, "Date": None},
}


@contextmanager
def house_style() -> Iterator[None]:
    """A context in which figures are made and written; the caller's settings come back after."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        yield


def arm_marker(criterion: str, mode: str, distilled: str = Distillation.NONE) -> dict[str, Any]:
    """Line properties that tell criterion and arm apart, in grey too.

    The criterion gives the colour and, without distillation, the shape; the mode the filling.
    """
    is_distilled = distilled in _DISTILLED_MARKERS
    return {
        "color": CRITERION_COLOURS[criterion],
        "marker": _DISTILLED_MARKERS[distilled] if is_distilled else CRITERION_MARKERS[criterion],
        "markersize": _DISTILLED_SIZE if is_distilled else mpl.rcParams["lines.markersize"],
        **_MODE_FILLS[mode],
    }


def arm_handle(
    mode: str,
    distilled: str = Distillation.NONE,
    deployment: str = Deployment.COLOCATED,
    **line: Any,
) -> Line2D:
    """What a legend shows for an arm whatever the criterion: the full decoder's, else a circle."""
    marker = arm_marker(NO_CRITERION, mode, distilled)
    if distilled == Distillation.NONE and mode != ServingMode.FULL:
        marker["marker"] = "o"
    label, opacity = arm_label(mode, distilled, deployment), DEPLOYMENT_OPACITIES[deployment]
    return Line2D([], [], label=label, alpha=opacity, **{**marker, **line})


def label_shares(axes: Axes, counts: Sequence[float], num_experts: int) -> None:
    """A logarithmic axis of kept experts with a tick at each count, its share underneath."""
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [f"{count:g}\n{count / num_experts:.0%}" for count in counts])
    axes.minorticks_off()
    axes.margins(x=0.08)


def set_panel_title(axes: Axes, title: str, num_columns: int) -> None:
    """The title of one of a page's columns of panels, broken into lines where it is too wide."""
    width = _PAGE_WIDTH_CHARACTERS // num_columns
    axes.set_title(textwrap.fill(title, width, break_on_hyphens=False, break_long_words=False))


def note_instead(axes: Axes, note: str) -> None:
    """The note in the middle of axes that have nothing to show."""
    axes.text(0.5, 0.5, note, ha="center", transform=axes.transAxes)
    axes.set_xticks([])


def note_figure(note: str) -> Figure:
    """A figure of a study that has nothing to show in it."""
    figure = Figure(figsize=(PAGE_WIDTH_IN, _NOTE_HEIGHT_IN), layout="constrained")
    axes = figure.subplots()
    note_instead(axes, note)
    axes.set_axis_off()
    return figure


def save_figure(figure: Figure, stem: Path, *, formats: Sequence[str], dpi: int) -> None:
    """The figure as stem.png, stem.pdf and so on; the same data gives the same bytes."""
    with house_style():
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        # Laid out once: every format would do it again, for half of the time of all figures.
        figure.set_layout_engine(None)
    for suffix in formats:
        with house_style(), atomic_file(stem.with_suffix(f".{suffix}")) as temporary:
            figure.savefig(temporary, format=suffix, dpi=dpi, metadata=_TIMELESS_METADATA[suffix])


def save_figures(
    figures: Mapping[str, Figure], captions: Mapping[str, Caption], path: Path, config: ReportConfig
) -> None:
    """Every figure under its name, beside the file at path, which has the caption of each."""
    assert captions.keys() == figures.keys()
    for name, figure in figures.items():
        save_figure(figure, path.parent / name, formats=config.figure_formats, dpi=config.dpi)
    write_captions(path, dict(captions), current_provenance())
    log.info("drew %d figures as %s", len(figures), ", ".join(config.figure_formats))
