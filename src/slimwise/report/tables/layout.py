"""Tables in the paper's layout: a line for each decoder, a column for each benchmark."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from slimwise.artifacts.tables import markdown_table
from slimwise.core.vocabulary import Phase, ServingMode
from slimwise.report.labels import arm_label, benchmark_label, decoder_label

Row = Mapping[Any, Any]
"""One row of the comparison table."""

_LINE = ["criterion", "num_kept", "distilled", "mode", "deployment"]
_PAPER_COLUMNS = ["paper_accuracy", "paper_length_p50_tokens", "paper_length_p90_tokens"]


@dataclass(frozen=True)
class Block:
    """One quantity of a table: a word for it, what it is, and how a row of cells shows it."""

    name: str
    heading: str
    cell: Callable[[Row], str]


def accuracy_cell(row: Row) -> str:
    """The mean accuracy, and the paper's in square brackets."""
    return f"{row['accuracy_mean']:.3f}{_beside(_fraction(row['paper_accuracy']))}"


def mean_and_deviation_cell(row: Row) -> str:
    """The mean accuracy, and its standard deviation over runs in brackets."""
    return f"{row['accuracy_mean']:.3f}{_in_brackets(_fraction(row['accuracy_std']))}"


def difference_cell(row: Row) -> str:
    """The accuracy minus that of the full decoder, which itself has no such cell."""
    if row["mode"] == ServingMode.FULL:
        return ""
    ends = [row[f"accuracy_difference_{end}"] for end in ("low", "high")]
    interval = " to ".join(f"{end:+.3f}" for end in ends if pd.notna(end))
    return f"{row['accuracy_difference']:+.3f}{_in_brackets(interval)}"


def lengths_cell(row: Row) -> str:
    """Median and 90th percentile of the length, and the paper's in square brackets."""
    ours = _quantile_pair(row, "length_{}_tokens")
    theirs = _quantile_pair(row, "paper_length_{}_tokens")
    return ours + _beside("" if theirs == "- / -" else theirs)


def length_interval_cell(quantile: str) -> Callable[[Row], str]:
    """A cell of one quantile of the length, and its interval in brackets."""

    def cell(row: Row) -> str:
        low, high = (row[f"length_{quantile}_{end}_tokens"] for end in ("low", "high"))
        interval = "" if pd.isna(low) else f"{whole_tokens(low)} to {whole_tokens(high)}"
        return whole_tokens(row[f"length_{quantile}_tokens"]) + _in_brackets(interval)

    return cell


def endings_cell(row: Row) -> str:
    """Percentages of answers that ended by themselves and that the budget cut."""
    return f"{100 * row['termination_rate']:.1f} / {100 * row['budget_hit_rate']:.1f}"


def decoder_columns(row: Row) -> dict[str, str]:
    """The leading cells of a line: experts and how the phases use them."""
    return {
        "experts": decoder_label(row["criterion"], row["num_kept"]),
        "decoder": arm_label(row["mode"], row["distilled"], row["deployment"]),
    }


def phase_columns(row: Row) -> dict[str, str]:
    """The same with the pool of each phase. SlimWise, table 3."""
    mode = ServingMode(row["mode"])
    pools = {str(phase): "pruned" if mode.prunes(phase) else "full" for phase in Phase}
    line = decoder_columns(row)
    return {"experts": line["experts"], **pools, "mode": line["decoder"]}


def in_paper_layout(
    title: str,
    rows: pd.DataFrame,
    blocks: Sequence[Block],
    *,
    leading: Callable[[Row], dict[str, str]] = decoder_columns,
) -> str:
    """Markdown of the rows, one block below the other; a block without any cell is left out."""
    parts = [f"# {title}\n"]
    for block in blocks:
        table = _block_table(rows, block, leading)
        if table:
            parts += [f"**{block.heading}**\n", table]
    return "\n".join([*parts, *(f"{note}\n" for note in [*notes(rows), _origin(rows)])])


def block_cells(
    rows: pd.DataFrame, block: Block, leading: Callable[[Row], dict[str, str]]
) -> pd.DataFrame:
    """Cells as text: one line for each use of a decoder that has a cell on any benchmark.

    A line's index is that of its first row.
    """
    lines = {}
    for _, line in rows.groupby(_LINE, sort=False):
        settings = line.to_dict("records")
        cells = {benchmark_label(row["benchmark"]): block.cell(row) for row in settings}
        if any(cells.values()):
            lines[line.index[0]] = {**leading(settings[0]), **cells}
    names = [*leading(rows.iloc[0].to_dict()), *benchmark_columns(rows)]
    return pd.DataFrame(list(lines.values()), index=list(lines), columns=names).fillna("")


def benchmark_columns(rows: pd.DataFrame) -> list[str]:
    """The columns that hold numbers, one a benchmark, in order."""
    return [benchmark_label(name) for name in rows["benchmark"].unique()]


def _block_table(rows: pd.DataFrame, block: Block, leading: Callable[[Row], dict[str, str]]) -> str:
    cells = block_cells(rows, block, leading)
    benchmarks = benchmark_columns(rows)
    return "" if cells.empty else markdown_table(cells, [name in benchmarks for name in cells])


def notes(rows: pd.DataFrame) -> Iterator[str]:
    """What a reader must know of the numbers."""
    first = rows.iloc[0]
    yield (
        f"Backbone: {first['backbone']}; decoding: {first['decoding']}; runs: "
        f"{_counts(rows['runs'])}; items a benchmark: {_counts(rows['num_items'])}. Lengths are "
        "quantiles over all answers, those that the budget cut too."
    )
    yield (
        f"Intervals: {first['confidence']:.0%}, percentiles of {first['num_resamples']} bootstrap "
        "resamples of the items with all their runs; those of differences pair decoders by item."
    )
    if rows[_PAPER_COLUMNS].notna().any(axis=None):
        yield "In square brackets: what the paper's public descriptions print for the same cell."


def _origin(rows: pd.DataFrame) -> str:
    """Where the numbers came from."""
    commits, machines = (", ".join(rows[name].unique()) for name in ("commit", "hardware"))
    dates = dict.fromkeys([min(rows["date"]), max(rows["date"])])
    return f"Commit {commits}; {machines}; {' to '.join(dates)}."


def _counts(numbers: pd.Series) -> str:
    return " or ".join(str(number) for number in sorted(numbers.unique()))


def _quantile_pair(row: Row, name: str) -> str:
    values = [row[name.format(quantile)] for quantile in ("p50", "p90")]
    return " / ".join(map(whole_tokens, values))


def whole_tokens(length: float) -> str:
    """Whole tokens; halves, which medians often have, go up."""
    return "-" if pd.isna(length) else f"{math.floor(length + 0.5):,}"


def _fraction(value: float) -> str:
    return "" if pd.isna(value) else f"{value:.3f}"


def _beside(paper: str) -> str:
    return f" [{paper}]" if paper else ""


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""
