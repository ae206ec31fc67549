"""The draw_measured_figures stage: every figure of measurements, from their tables."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from slimwise.artifacts.captions import Caption
from slimwise.artifacts.coverage_table import COVERAGE_COLUMNS
from slimwise.artifacts.tables import read_table
from slimwise.core.vocabulary import MoeKernels
from slimwise.report.config import ReportConfig
from slimwise.report.figures.style import save_figures
from slimwise.report.measured.columns import (
    MASK_OVERHEAD_COLUMNS,
    PREFILL_COLUMNS,
    RATIO_COLUMNS,
    SERVED_COLUMNS,
    SPLIT_RULE_COLUMNS,
    THROUGHPUT_COLUMNS,
)
from slimwise.report.measured.figures.captions import (
    coverage_caption,
    measured_captions,
    throughput_caption,
)
from slimwise.report.measured.figures.coverage import draw_coverage, draw_decode_coverage
from slimwise.report.measured.figures.mask_overhead import draw_mask_overhead
from slimwise.report.measured.figures.split_rules import draw_split_rules
from slimwise.report.measured.figures.throughput import draw_throughput
from slimwise.report.measured.served import sound

_Read = Callable[[str, tuple[str, ...]], pd.DataFrame]


def draw_measured_figures(config: ReportConfig, *, tables: Path, out: Path) -> None:
    """Every figure in the folder out, and captions.json with what is to be said of each.

    tables is the folder that write_measured_tables wrote.
    """

    def read(name: str, columns: tuple[str, ...]) -> pd.DataFrame:
        return read_table(tables / f"{name}.csv", columns)

    throughput = read("throughput", THROUGHPUT_COLUMNS)
    ratios = read("ratio_at_target", RATIO_COLUMNS)
    coverage = read("coverage", COVERAGE_COLUMNS)
    curves = {"tuned_throughput": _tuned_curves(read)}
    if (tables / "served_throughput.csv").is_file():
        curves["served_throughput"] = _served_curves(read)
    figures = {
        "throughput": draw_throughput(throughput, ratios),
        **{name: figure for name, (figure, _) in curves.items()},
        "coverage": draw_coverage(coverage, read("prefill_throughput", PREFILL_COLUMNS)),
        "mask_overhead": draw_mask_overhead(read("mask_overhead", MASK_OVERHEAD_COLUMNS)),
        "split_rules": draw_split_rules(read("split_rules", SPLIT_RULE_COLUMNS)),
    }
    captions = {
        **measured_captions(throughput, ratios),
        **{name: caption for name, (_, caption) in curves.items()},
    }
    save_figures(figures, captions, out / "captions.json", config)


def _tuned_curves(read: _Read) -> tuple[Figure, Caption]:
    tuned, ratios = (
        rows[rows["kernels"] == MoeKernels.TUNED]
        for rows in (
            read("tuned_throughput", THROUGHPUT_COLUMNS),
            read("tuned_ratio_at_target", RATIO_COLUMNS),
        )
    )
    caption = throughput_caption(tuned, ratios, "with tuned kernels")
    return draw_throughput(tuned, ratios), caption


def _served_curves(read: _Read) -> tuple[Figure, Caption]:
    """Of the kernels that vLLM takes by itself."""
    served, ratios = (
        rows[rows["kernels"] != MoeKernels.TUNED]
        for rows in (
            sound(read("served_throughput", SERVED_COLUMNS)),
            read("served_ratio_at_target", RATIO_COLUMNS),
        )
    )
    caption = throughput_caption(served, ratios, "of servers under load")
    return draw_throughput(served, ratios, ("routing", "deployment")), caption


def draw_coverage_figure(config: ReportConfig, *, coverage: Path, out: Path) -> None:
    """The coverage of a study's own decoding and its caption, in the folder out."""
    rows = read_table(coverage, COVERAGE_COLUMNS)
    figures = {"coverage": draw_decode_coverage(rows)}
    captions = {"coverage": coverage_caption(rows)}
    save_figures(figures, captions, out / "coverage_captions.json", config)
