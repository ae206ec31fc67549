"""Tables of the page: what each shows, and the origin of every line."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.report.page.origins import Origin
from slimwise.report.tables import layout
from slimwise.report.tables.paper_tables import PaperTable

_NOTE = re.compile(r"^(?P<value>.+?) (?P<note>[(\[].*)$")
_NUMBER = re.compile(r"-?\d+(\.\d+)?(e-?\d+)?")
_DIGITS = 4
"""Of the largest number of a column; of shares the three behind the point."""


@dataclass(frozen=True)
class Cell:
    """A value, and what stands smaller beside it."""

    value: str
    note: str = ""


@dataclass(frozen=True)
class Column:
    """A heading; numbers are aligned right."""

    name: str
    is_number: bool


@dataclass(frozen=True)
class Line:
    """The cells of a line, the first of which names it, and where they came from."""

    cells: tuple[Cell, ...]
    origin: Origin | None


@dataclass(frozen=True)
class Grid:
    """Lines of one quantity: a word for it, and what it is."""

    name: str
    heading: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class PageTable:
    """One table: its grids have the same lines, of which the page shows one quantity at a time."""

    anchor: str
    title: str
    grids: tuple[Grid, ...]
    notes: tuple[str, ...] = ()


def paper_table(
    anchor: str, table: PaperTable, rows: pd.DataFrame, origin: Callable[[Any], Origin]
) -> PageTable:
    """One of tables 1 to 4 from its rows of the comparison."""
    numbers = layout.benchmark_columns(rows)
    grids = []
    for block in table.blocks:
        cells = layout.block_cells(rows, block, table.leading)
        origins = [origin(rows.loc[index].to_dict()) for index in cells.index]
        if not cells.empty:
            grids.append(grid(cells, numbers, origins, name=block.name, heading=block.heading))
    return PageTable(anchor, table.title, tuple(grids), tuple(layout.notes(rows)))


def plain_table(
    anchor: str,
    title: str,
    cells: pd.DataFrame,
    origins: Sequence[Origin | None],
    notes: tuple[str, ...] = (),
) -> PageTable:
    """Any table from its cells of text: columns that say one thing throughout become a note."""
    shown = cells.drop(columns=[name for name in PROVENANCE_COLUMNS if name in cells])
    same = [name for name in map(str, shown) if len(shown) > 1 and shown[name].nunique() == 1]
    constants = [(name, _rounded(shown[name]).iloc[0]) for name in same]
    told = "; ".join(f"{_words(name)}: {value}" for name, value in constants if value)
    varied = shown.drop(columns=same).apply(_rounded)
    numbers = [name for name in map(str, varied) if varied[name].map(_is_number_or_empty).all()]
    only = grid(varied, numbers, origins)
    return PageTable(anchor, title, (only,), (f"{told}.", *notes) if told else notes)


def grid(
    cells: pd.DataFrame,
    numbers: Iterable[str],
    origins: Sequence[Origin | None],
    *,
    name: str = "",
    heading: str = "",
) -> Grid:
    """The cells of text, of which the columns named numbers are aligned right."""
    right = set(numbers)
    columns = tuple(Column(_words(column), column in right) for column in map(str, cells))
    rows = cells.itertuples(index=False)
    lines = tuple(
        Line(tuple(map(_cell, row)), origin) for row, origin in zip(rows, origins, strict=True)
    )
    return Grid(name, heading, columns, lines)


def _cell(text: str) -> Cell:
    found = _NOTE.match(text)
    return Cell(found["value"], found["note"]) if found else Cell(text)


def _words(name: str) -> str:
    """A column's name, such as "tokens/s/GPU"."""
    return name.replace("_per_", "/").replace("_", " ").replace("/gpu", "/GPU")


def _is_number_or_empty(text: str) -> bool:
    return not text or _NUMBER.fullmatch(text) is not None


def _rounded(column: pd.Series) -> pd.Series:
    """A column with fractions as numbers of equally many decimals; any other as it is."""
    if not column.map(_is_number_or_empty).all() or not column.str.contains(".", regex=False).any():
        return column
    numbers = pd.to_numeric(column)
    largest = numbers.abs().max()
    decimals = max(0, _DIGITS - 1 - max(0, math.floor(math.log10(largest)) if largest else 0))
    return numbers.map(lambda number: "" if pd.isna(number) else f"{number:.{decimals}f}")
