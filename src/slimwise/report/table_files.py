"""The files of a report's tables, each as CSV and Markdown."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from slimwise.artifacts.tables import write_table


class Table(NamedTuple):
    """A table's name, rows and columns; its Markdown where that is not the same cells; a note."""

    name: str
    rows: pd.DataFrame
    columns: tuple[str, ...]
    twin: str | None = None
    note: str = ""


def write_table_files(tables: Iterable[Table], out: Path, digits: int) -> None:
    """Write every table into the folder out, under its name."""
    for name, rows, columns, twin, note in tables:
        write_table(out / f"{name}.csv", rows, columns, digits=digits, twin=twin, note=note)
