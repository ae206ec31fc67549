"""The write-throughput-tables stage: what servers did under load, from the rows of sweeps."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from slimwise.artifacts.json_rows import read_json_rows
from slimwise.artifacts.tables import read_table
from slimwise.core.vocabulary import Deployment
from slimwise.report.config import ReportConfig
from slimwise.report.measured.columns import RATIO_COLUMNS
from slimwise.report.measured.notes import SERVED, SERVED_PREFILL, SERVED_WEIGHTS
from slimwise.report.measured.served import (
    served_prefill_table,
    served_ratio_table,
    served_table,
    sound,
)
from slimwise.report.measured.throughput import ratio_markdown
from slimwise.report.served.columns import SWEPT_COLUMNS, SWEPT_PREFILL_COLUMNS, TRADE_OFF_COLUMNS
from slimwise.report.served.trade_off import trade_off_table
from slimwise.report.table_files import Table, write_table_files
from slimwise.report.tables.columns import ACCURACY_COLUMNS

log = logging.getLogger(__name__)

_SERVED = f"{SERVED} On CPU a server counts as a GPU."
_NOTES = {
    "throughput": f"{_SERVED} {SERVED_WEIGHTS} A row with faults is in no ratio and no figure.",
    "ratio_at_target": (
        "Throughput of a GPU over the full model's, where a user gets the target, interpolated "
        "linearly in the two rates between the two neighbouring loads (batch: tokens/s/user, "
        f"tokens/s/GPU). {_SERVED} {SERVED_WEIGHTS}"
    ),
    "prefill_throughput": f"{SERVED_PREFILL} {SERVED_WEIGHTS}",
    "accuracy_and_throughput": (
        "Accuracy of the study's table beside the throughput of the decoder at the target, from "
        "its own checkpoint if that was swept and else as a pool; the ratio is to the full model. "
        f"{SERVED_WEIGHTS}"
    ),
}


def write_throughput_tables(
    config: ReportConfig, *, rows: Sequence[Path], accuracy: Path, paper: Path, out: Path
) -> None:
    """Every table of served throughput, each as CSV and Markdown, in the folder out.

    rows are the files of sweeps, accuracy the study's table of it; paper has the paper's ratios.
    """
    found = [row for path in rows for row in read_json_rows(path)]
    served = served_table(found, SWEPT_COLUMNS)
    target = config.target_tokens_per_s_per_user
    ratios = served_ratio_table(served, target=target, paper=paper)
    answers = read_table(accuracy, ACCURACY_COLUMNS)
    prefill = served_prefill_table(found, SWEPT_PREFILL_COLUMNS)
    both = trade_off_table(answers, sound(served), target=target)
    tables = [
        Table("throughput", served, SWEPT_COLUMNS),
        Table("ratio_at_target", ratios, RATIO_COLUMNS, ratio_markdown(ratios)),
        Table("prefill_throughput", prefill, SWEPT_PREFILL_COLUMNS),
        Table("accuracy_and_throughput", both, TRADE_OFF_COLUMNS),
    ]
    notes = {**_NOTES, "ratio_at_target": _NOTES["ratio_at_target"] + _compared(ratios, served)}
    noted = [table._replace(note=notes[table.name]) for table in tables]
    write_table_files(noted, out, config.table_digits)
    log.info("wrote %d tables of throughput under %d loads", len(tables), len(served))


def _compared(ratios: pd.DataFrame, served: pd.DataFrame) -> str:
    """Which full model disaggregated decoders are compared with, if there are any."""
    apart = ratios[ratios["deployment"] == Deployment.DISAGGREGATED]
    if apart.empty:
        return ""
    deployments = served.loc[served["engine"].isin(apart["full_engine"]), "deployment"].unique()
    return f" Disaggregated decoders are compared with the {' or '.join(deployments)} full model."
