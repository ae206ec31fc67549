"""The paper's printed results, to stand beside ours where backbone and benchmark are the same."""

from pathlib import Path

import pandas as pd

from slimwise.artifacts.tables import check_columns, csv_frame

_CELL = ("backbone", "criterion", "num_kept", "mode", "distilled", "decoding", "benchmark")
_PRINTED = ("accuracy", "length_p50_tokens", "length_p90_tokens")
_COLUMNS = (*_CELL, *_PRINTED, "source", "note")
_RESTORE = "Restore the file."


def read_paper_cells(path: Path) -> pd.DataFrame:
    """One row for each cell that the paper's descriptions print; lengths in tokens.

    Missing are values that no description prints; a missing criterion was not given.
    """
    cells = csv_frame(path, "the paper's results", _RESTORE)
    check_columns(f"the paper's results {path}", cells, _COLUMNS, _RESTORE)
    return cells


def with_paper_values(rows: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """The rows in their order with columns paper_accuracy and paper_length_*, missing elsewhere.

    A cell stands beside every row of the same backbone (letter case aside), pool, mode,
    distillation, decoding and benchmark, however it is deployed: the paper does not say.
    """
    printed = cells.dropna(subset=["criterion"])[[*_CELL, *_PRINTED]]
    printed = printed.rename(columns={name: f"paper_{name}" for name in _PRINTED})
    keyed = rows.assign(**{"backbone": rows["backbone"].str.casefold()})
    named = printed.assign(**{"backbone": printed["backbone"].str.casefold()})
    beside = keyed[list(_CELL)].merge(named, on=list(_CELL), how="left", validate="many_to_one")
    paper = beside.drop(columns=list(_CELL)).set_index(rows.index)
    return pd.concat([rows, paper], axis=1)
