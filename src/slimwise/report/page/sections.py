"""What the page shows, in the order in which it is read."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from slimwise.report.labels import CRITERION_LABELS, benchmark_label
from slimwise.report.page.figures import PageFigure, page_figure
from slimwise.report.page.origins import Verdicts, overlap_origin, row_origin
from slimwise.report.page.paper import table_beside_paper
from slimwise.report.page.products import Products
from slimwise.report.page.tables import PageTable, paper_table, plain_table
from slimwise.report.selection import reported
from slimwise.report.tables.columns import (
    COMPARISON_COLUMNS,
    OVERLAP_COLUMNS,
    STAGE_TIME_COLUMNS,
)
from slimwise.report.tables.paper_tables import PAPER_TABLES

# A name stands for a figure, for a table, or for the figure and below it the table.
_ORDER = {
    "Accuracy and length": (
        "table_1",
        "accuracy_by_num_kept",
        "figure_1b",
        "figure_3",
        "figure_5",
        "table_2",
        "distillation",
        "table_3",
        "table_4",
        "categories",
        "findings",
        "lm_eval_cross_check",
    ),
    "Output lengths": ("output_lengths", "length_accuracy"),
    "Experts": (
        "expert_load",
        "expert_load_by_component",
        "keep_set_overlap",
        "keep_set_overlap_by_layer",
        "coverage",
    ),
    "Throughput": (
        "throughput",
        "ratio_at_target",
        "prefill_throughput",
        "accuracy_and_throughput",
    ),
}
_TABLES = {
    "categories": "Accuracy by category",
    "findings": "What else the graders found",
    "lm_eval_cross_check": "The full model beside lm-eval",
    "coverage": "Share of the experts that a decode step reads",
    "throughput": "Decode throughput by load",
    "ratio_at_target": "Throughput at {target:g} tokens/s for each user",
    "prefill_throughput": "Prefill throughput",
    "accuracy_and_throughput": "Accuracy and decode throughput",
}
_SWEPT = ("backbone", "engine", "deployment", "mode", "num_kept", "weights")
_SHOWN = {
    "throughput": (
        *_SWEPT,
        "batch_offered",
        "batch_running",
        "step_ms",
        "tokens_per_s_per_user",
        "tokens_per_s_per_gpu",
        "ttft_ms",
        "tpot_ms",
        "faults",
        "prompt_tokens",
        "output_tokens",
        "vllm",
    ),
    "ratio_at_target": (
        *(name for name in _SWEPT if name != "mode"),
        "full_tokens_per_s_per_gpu",
        "tokens_per_s_per_gpu",
        "ratio",
        "paper_ratio",
    ),
    "prefill_throughput": (*_SWEPT, "prefill_tokens_per_s", "prompt_tokens", "vllm"),
}
"""Columns of tables that are too wide for a page; the others are in the file."""
_FURTHER = "Further figures"
_JOBS_NOTE = "Seconds of all jobs of a stage together; jobs run side by side where cores allow."


@dataclass(frozen=True)
class Section:
    """A part of the page: figures and tables in the order in which they are read."""

    anchor: str
    title: str
    items: tuple[PageFigure | PageTable, ...]


def page_sections(products: Products, verdicts: Verdicts, paper: Path) -> tuple[Section, ...]:
    """The parts of the page; a part of which the study has nothing is left out."""
    figures = {
        name: page_figure(name, caption, image)
        for name, (caption, image) in products.figures().items()
    }
    named = {name for names in _ORDER.values() for name in names}
    order = {**_ORDER, _FURTHER: tuple(name for name in figures if name not in named)}
    parts: dict[str, list[PageFigure | PageTable]] = {title: [] for title in order}
    for title, names in order.items():
        for name in names:
            parts[title] += [figures[name]] if name in figures else []
            parts[title] += _tables(products, verdicts, name)
    comparison = products.table("table_4", COMPARISON_COLUMNS)
    parts["Beside the paper"] = [table_beside_paper(comparison, paper, verdicts)]
    parts["Wall time"] = [_stage_times(products)]
    return tuple(
        Section(title.lower().replace(" ", "-"), title, tuple(items))
        for title, items in parts.items()
        if items
    )


def _tables(products: Products, verdicts: Verdicts, name: str) -> Iterator[PageTable]:
    """The table of that name, if the study has it and there is anything in it."""
    if name in PAPER_TABLES:
        rows = products.table(name, COMPARISON_COLUMNS)
        yield paper_table(name, PAPER_TABLES[name], rows, verdicts.origin)
    elif name == "keep_set_overlap":
        yield from _overlaps(products)
    elif name in _TABLES and products.has_table(name):
        yield from _table_of_file(products, name)


def _table_of_file(products: Products, name: str) -> Iterator[PageTable]:
    """The columns of the table that the page has room for, of the decoding that it reports."""
    cells = products.table_cells(name)
    cells = reported(cells) if "decoding" in cells else cells
    if cells.empty:
        return
    path = products.paths.table(name)
    origins = [row_origin(path, row) for row in cells.to_dict("records")]
    shown = cells[list(_SHOWN.get(name, cells))].replace({"criterion": CRITERION_LABELS})
    if "benchmark" in shown:
        shown["benchmark"] = shown["benchmark"].map(benchmark_label)
    report = products.record.configuration["report"]
    title = _TABLES[name].format(target=report["target_tokens_per_s_per_user"])
    yield plain_table(f"table-{name}", title, shown, origins, products.notes(name))


def _overlaps(products: Products) -> Iterator[PageTable]:
    rows = products.table("keep_set_overlap", OVERLAP_COLUMNS).to_dict("records")
    origins = [overlap_origin(products.paths, row) for row in rows]
    if rows:
        cells = products.table_cells("keep_set_overlap").replace(CRITERION_LABELS)
        title = "Jaccard index of two criteria's keep sets, over layers"
        yield plain_table("table-keep_set_overlap", title, cells, origins)


def _stage_times(products: Products) -> PageTable:
    """Jobs of one rule together."""
    times = products.table("stage_times", STAGE_TIME_COLUMNS)
    rules = times["stage"].str.partition("/")[0].rename("stage")
    seconds = times.groupby(rules, sort=False)["seconds"]
    cells = pd.DataFrame({"jobs": seconds.size(), "seconds": seconds.sum().round(1)})
    origin = row_origin(products.paths.table("stage_times"), times.iloc[0].to_dict())
    text = cells.reset_index().astype(str)
    title, origins = "Seconds by stage", [origin] * len(text)
    return plain_table("table-stage_times", title, text, origins, (_JOBS_NOTE,))
