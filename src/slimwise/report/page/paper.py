"""The study's numbers beside the paper's."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from slimwise.report.labels import CRITERION_LABELS, arm_label, benchmark_label, decoder_label
from slimwise.report.order import NO_CRITERION
from slimwise.report.page.origins import Origin, Verdicts
from slimwise.report.page.tables import PageTable, grid
from slimwise.report.paper.cells import read_paper_cells

_QUANTITIES = {
    "accuracy": ("accuracy_mean", "accuracy"),
    "p50": ("length_p50_tokens", "length_p50_tokens"),
    "p90": ("length_p90_tokens", "length_p90_tokens"),
}
"""Our column and the paper's of each quantity."""
_NUM_WORDS = 3
"""Leading columns that are no numbers."""
_POOL = ["criterion", "share", "mode", "distilled"]
_CELL = ["backbone", "benchmark"]
_SAME_CELLS = (
    "The same backbone, pool, decoder and benchmark as in the paper's public descriptions; what "
    "they do not print is empty."
)
_DIRECTIONS = (
    "The paper's public descriptions print nothing of this study's backbone and benchmarks. Beside "
    "each of their accuracies stands what this study measured of the same criterion, share of "
    "experts and decoder, as a mean over its own benchmarks: compare the directions, not the sizes."
)


def table_beside_paper(comparison: pd.DataFrame, paper: Path, verdicts: Verdicts) -> PageTable:
    """Cell by cell where the paper measured the same, otherwise differences to the full model.

    comparison are rows of every setting, such as those of table 4; paper its printed results.
    """
    printed = comparison[["paper_accuracy", "paper_length_p50_tokens", "paper_length_p90_tokens"]]
    same = comparison[printed.notna().any(axis=1)]
    if same.empty:
        return _directions(comparison, read_paper_cells(paper), verdicts)
    return _same_cells(same, verdicts)


def _same_cells(rows: pd.DataFrame, verdicts: Verdicts) -> PageTable:
    records = rows.to_dict("records")
    frame = pd.DataFrame([_beside(row) for row in records])
    return _table(frame, [verdicts.origin(row) for row in records], _SAME_CELLS)


def _beside(row: Mapping[Any, Any]) -> dict[str, str]:
    """The cells of a line: ours and the paper's of each quantity in turn."""
    numbers = {
        f"{name}, {whose}": _number(row[f"{prefix}{column}"])
        for name, (column, printed) in _QUANTITIES.items()
        for whose, prefix, column in (("ours", "", column), ("paper", "paper_", printed))
    }
    return {
        "experts": decoder_label(row["criterion"], row["num_kept"]),
        "decoder": arm_label(row["mode"], row["distilled"], row["deployment"]),
        "benchmark": benchmark_label(row["benchmark"]),
        **numbers,
    }


def _directions(comparison: pd.DataFrame, printed: pd.DataFrame, verdicts: Verdicts) -> PageTable:
    theirs = _with_share(printed.dropna(subset=["criterion", "accuracy"]))
    full = theirs[theirs["criterion"] == NO_CRITERION].set_index(_CELL)["accuracy"].rename("full")
    pruned = theirs[theirs["criterion"] != NO_CRITERION].join(full, on=_CELL)
    ours = dict(iter(_with_share(comparison).groupby(_POOL)))
    lines, origins = [], []
    for row in pruned.dropna(subset=["full"]).to_dict("records"):
        found = ours.get(tuple(row[name] for name in _POOL))
        lines.append({**_printed(row), "this study, minus full": _mean_difference(found)})
        origins.append(None if found is None else verdicts.origin(found.iloc[0].to_dict()))
    source = f"Source of the paper's numbers: {printed['source'].iloc[0]}."
    return _table(pd.DataFrame(lines), origins, _DIRECTIONS, source)


def _table(cells: pd.DataFrame, origins: Sequence[Origin | None], *notes: str) -> PageTable:
    only = grid(cells, list(map(str, cells))[_NUM_WORDS:], origins)
    return PageTable("table-paper", "This study and the paper", (only,), notes)


def _printed(row: Mapping[Any, Any]) -> dict[str, str]:
    return {
        "experts": f"{CRITERION_LABELS[row['criterion']]} {row['share']:.0%}",
        "decoder": arm_label(row["mode"], row["distilled"]),
        "measured on": f"{row['backbone']}, {benchmark_label(row['benchmark'])}",
        "paper": f"{row['accuracy']:.3f}",
        "minus full": f"{row['accuracy'] - row['full']:+.3f}",
    }


def _mean_difference(rows: pd.DataFrame | None) -> str:
    return "" if rows is None else f"{rows['accuracy_difference'].mean():+.3f}"


def _with_share(rows: pd.DataFrame) -> pd.DataFrame:
    """With the share of its backbone's experts that each decoder keeps."""
    full = rows[rows["criterion"] == NO_CRITERION].groupby("backbone")["num_kept"].first()
    return rows.assign(share=rows["num_kept"] / rows["backbone"].map(full))


def _number(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.4g}"
