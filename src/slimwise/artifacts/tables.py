"""Result tables: a CSV file to compute with, and a Markdown twin of the same cells to read."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from slimwise.artifacts.atomic import atomic_file
from slimwise.errors import ArtifactError

PROVENANCE_COLUMNS = ("commit", "date", "hardware")


def write_table(path: Path, frame: pd.DataFrame, columns: Sequence[str], *, digits: int) -> None:
    """Both files of a table, the Markdown twin beside the CSV under the same stem.

    Cells are formatted once, numbers to `digits` significant digits, missing values empty, so
    the twins cannot disagree. ArtifactError if the frame does not have exactly these columns.
    """
    if list(frame.columns) != list(columns):
        raise ArtifactError(
            f"table {path.name}: columns are {', '.join(frame.columns)}; expected exactly "
            f"{', '.join(columns)}."
        )
    cells = frame.apply(lambda column: column.map(lambda value: _cell(value, digits)))
    numeric = [pd.api.types.is_numeric_dtype(frame[name]) for name in columns]
    with atomic_file(path) as temporary:
        cells.to_csv(temporary, index=False, lineterminator="\n")
    with atomic_file(path.with_suffix(".md")) as temporary:
        temporary.write_text(_markdown(cells, numeric), encoding="utf-8")


def read_table(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """The table that write_table wrote; ArtifactError if it is missing or has other columns."""
    try:
        frame = pd.read_csv(path, keep_default_na=False, na_values=[""])
    except (OSError, ValueError) as failure:
        raise ArtifactError(
            f"cannot read table {path}: {failure}. Run the write_tables rule again."
        ) from failure
    if list(frame.columns) != list(columns):
        raise ArtifactError(
            f"table {path} has columns {', '.join(frame.columns)}; expected "
            f"{', '.join(columns)}. Run the write_tables rule again."
        )
    return frame


def _cell(value: object, digits: int) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def _markdown(cells: pd.DataFrame, numeric: Sequence[bool]) -> str:
    rules = ["---:" if right else "---" for right in numeric]
    rows = [cells.columns, rules, *cells.itertuples(index=False)]
    return "".join(f"| {' | '.join(_escaped(cell) for cell in row)} |\n" for row in rows)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")
