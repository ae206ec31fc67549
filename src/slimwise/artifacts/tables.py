"""Result tables: a CSV file to compute with, and a Markdown twin to read."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from slimwise.artifacts.atomic import atomic_file
from slimwise.errors import ArtifactError

PROVENANCE_COLUMNS = ("commit", "date", "hardware")
"""The last columns of every table."""

_RENEW = "Delete it and run the study again."


def write_table(
    path: Path,
    frame: pd.DataFrame,
    columns: Sequence[str],
    *,
    digits: int,
    twin: str | None = None,
    note: str = "",
) -> None:
    """The table as CSV at path and as Markdown beside it, under the same stem.

    Fractions have `digits` significant digits, missing values are empty. The Markdown shows the
    same cells, or is the text `twin`, where the frame reads better in another layout; `note`, what
    a reader must know of the numbers, ends it.
    ArtifactError unless the frame has exactly the columns, then those of provenance.
    """
    check_columns(f"table {path.name}", frame, (*columns, *PROVENANCE_COLUMNS), _RENEW)
    numeric = [pd.api.types.is_numeric_dtype(frame[name]) for name in frame]
    cells = pd.DataFrame({name: [_cell(value, digits) for value in frame[name]] for name in frame})
    with atomic_file(path) as temporary:
        cells.to_csv(temporary, index=False, lineterminator="\n")
    with atomic_file(path.with_suffix(".md")) as temporary:
        text = markdown_table(cells, numeric) if twin is None else twin
        temporary.write_text(text + (f"\n{note}\n" if note else ""), encoding="utf-8")


def markdown_table(cells: pd.DataFrame, numeric: Sequence[bool]) -> str:
    """The cells of text as a Markdown table; columns named numeric are aligned right."""
    alignments = ["---:" if right else "---" for right in numeric]
    rows = [cells.columns, alignments, *cells.itertuples(index=False)]
    return "".join(f"| {' | '.join(map(_escaped, row))} |\n" for row in rows)


def read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The table that write_table wrote; ArtifactError if it is missing or has other columns."""
    # A commit such as 12e4567 would be read as a number.
    frame = csv_frame(path, "table", _RENEW, dtype={"commit": str})
    check_columns(f"table {path}", frame, (*columns, *PROVENANCE_COLUMNS), _RENEW)
    return frame


def read_table_cells(path: Path) -> pd.DataFrame:
    """The cells of any table that write_table wrote, as text; ArtifactError if it is no table."""
    return csv_frame(path, "table", _RENEW, dtype=str, missing=())


def csv_frame(
    path: Path, what: str, remedy: str, *, dtype: Any = None, missing: Sequence[str] = ("",)
) -> pd.DataFrame:
    """The rows of a CSV file; missing are the cells of these texts, which usually are the empty.

    ArtifactError tells what cannot be read, and the remedy.
    """
    try:
        return pd.read_csv(path, dtype=dtype, keep_default_na=False, na_values=missing)
    except (OSError, ValueError) as failure:
        raise ArtifactError(f"cannot read {what} {path}: {failure}. {remedy}") from failure


def check_columns(name: str, frame: pd.DataFrame, columns: Sequence[str], remedy: str) -> None:
    """ArtifactError tells the remedy unless the frame has exactly the columns."""
    if list(frame.columns) != list(columns):
        raise ArtifactError(
            f"{name} has columns {', '.join(frame.columns)}; expected {', '.join(columns)}. "
            f"{remedy}"
        )


def _cell(value: Any, digits: int) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
