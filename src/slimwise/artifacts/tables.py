"""Result tables: a CSV file to compute with, and a Markdown twin of the same cells to read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from slimwise.artifacts.atomic import atomic_file
from slimwise.errors import ArtifactError

PROVENANCE_COLUMNS = ("commit", "date", "hardware")
"""The last columns of every table."""


def write_table(path: Path, frame: pd.DataFrame, columns: Sequence[str], *, digits: int) -> None:
    """The table as CSV at path and as Markdown beside it, under the same stem.

    Cells are formatted once, fractions to `digits` significant digits and missing values empty,
    so the twins cannot disagree. ArtifactError unless the frame has exactly the columns, then
    those of provenance.
    """
    _check_columns(f"table {path.name}", frame, columns)
    numeric = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame]
    cells = pd.DataFrame({name: [_cell(value, digits) for value in frame[name]] for name in frame})
    with atomic_file(path) as temporary:
        cells.to_csv(temporary, index=False, lineterminator="\n")
    with atomic_file(path.with_suffix(".md")) as temporary:
        temporary.write_text(_markdown(cells, numeric), encoding="utf-8")


def read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The table that write_table wrote; ArtifactError if it is missing or has other columns."""
    try:
        # A commit such as 12e4567 would be read as a number.
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""], dtype={"commit": str})
    except (OSError, ValueError) as failure:
        raise ArtifactError(
            f"cannot read table {path}: {failure}. Run the rule that writes it again."
        ) from failure
    _check_columns(f"table {path}", frame, columns)
    return frame


def _check_columns(name: str, frame: pd.DataFrame, columns: Sequence[str]) -> None:
    expected = [*columns, *PROVENANCE_COLUMNS]
    if list(frame.columns) != expected:
        raise ArtifactError(
            f"{name} has columns {', '.join(frame.columns)}; expected {', '.join(expected)}. "
            "Run the rule that writes it again."
        )


def _cell(value: Any, digits: int) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _markdown(cells: pd.DataFrame, numeric: Sequence[bool]) -> str:
    alignments = ["---:" if right else "---" for right in numeric]
    rows = [cells.columns, alignments, *cells.itertuples(index=False)]
    return "".join(f"| {' | '.join(map(_escaped, row))} |\n" for row in rows)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
