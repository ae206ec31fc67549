"""Tables 1 to 4 of the paper: which rows of the comparison each shows, and what of them."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from slimwise.core.vocabulary import Distillation, ServingMode
from slimwise.report.selection import at_half, of_leading_criterion, reported
from slimwise.report.tables.layout import (
    Block,
    Row,
    accuracy_cell,
    decoder_columns,
    difference_cell,
    endings_cell,
    in_paper_layout,
    length_interval_cell,
    lengths_cell,
    mean_and_deviation_cell,
    phase_columns,
)

_FORWARD = (ServingMode.FULL, ServingMode.PRUNED, ServingMode.SLIMWISE)
_MEANS = (
    Block("accuracy", "Accuracy, mean over runs", accuracy_cell),
    Block("difference", "Accuracy minus that of the full decoder (interval)", difference_cell),
    Block("length", "Output length, p50 / p90, tokens", lengths_cell),
)
_ENDINGS = Block(
    "endings", "Answers that ended by themselves / were cut by the budget, %", endings_cell
)
_SPREAD = (
    Block("accuracy", "Accuracy, mean over runs (standard deviation)", mean_and_deviation_cell),
    Block("length p50", "Output length, p50 (interval), tokens", length_interval_cell("p50")),
    Block("length p90", "Output length, p90 (interval), tokens", length_interval_cell("p90")),
)


@dataclass(frozen=True)
class PaperTable:
    """One table: its title, the rows it takes from the comparison, and what it shows of them."""

    title: str
    select: Callable[[pd.DataFrame], pd.DataFrame]
    blocks: tuple[Block, ...]
    leading: Callable[[Row], dict[str, str]] = decoder_columns

    def markdown(self, rows: pd.DataFrame) -> str:
        """The rows in the layout of the paper's table."""
        return in_paper_layout(self.title, rows, self.blocks, leading=self.leading)


def _rows_of_table_1(comparison: pd.DataFrame) -> pd.DataFrame:
    """At half of the experts, every criterion, training-free and distilled."""
    rows = at_half(reported(comparison))
    distilled = rows["distilled"].isin([Distillation.NONE, Distillation.UNIFORM])
    return rows[rows["mode"].isin(_FORWARD) & distilled]


def _rows_of_table_2(comparison: pd.DataFrame) -> pd.DataFrame:
    """The leading criterion at every number of kept experts, distilled with s = 0 too."""
    rows = of_leading_criterion(reported(comparison))
    return rows[rows["mode"].isin(_FORWARD)]


def _rows_of_table_3(comparison: pd.DataFrame) -> pd.DataFrame:
    """The four pairs of prefill and decode pool, training-free."""
    rows = reported(comparison)
    return rows[rows["distilled"] == Distillation.NONE]


def _rows_of_table_4(comparison: pd.DataFrame) -> pd.DataFrame:
    """Every setting, for means and deviations over runs."""
    return reported(comparison)


PAPER_TABLES = {
    "table_1": PaperTable(
        "Table 1. Accuracy and output length at half of the experts",
        _rows_of_table_1,
        (*_MEANS, _ENDINGS),
    ),
    "table_2": PaperTable(
        "Table 2. Accuracy and output length by the number of experts kept",
        _rows_of_table_2,
        (*_MEANS, _ENDINGS),
    ),
    "table_3": PaperTable(
        "Table 3. Which of the two phases is pruned", _rows_of_table_3, _MEANS, phase_columns
    ),
    "table_4": PaperTable("Table 4. Spread over runs and items", _rows_of_table_4, _SPREAD),
}
"""The tables by the names of their files."""
