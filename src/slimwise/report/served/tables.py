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
from slimwise.report.measured.decode_rows import Weights
from slimwise.report.measured.throughput import ratio_markdown, ratio_table
from slimwise.report.served.columns import (
    SERVED_COLUMNS,
    SERVED_PREFILL_COLUMNS,
    TRADE_OFF_COLUMNS,
)
from slimwise.report.served.rows import served_prefill_table, served_table, sound
from slimwise.report.served.trade_off import trade_off_table
from slimwise.report.table_files import Table, write_table_files
from slimwise.report.tables.columns import ACCURACY_COLUMNS

log = logging.getLogger(__name__)

_SERVED = (
    "Requests of random prompts, all of one length, answered greedily and as long as asked, by "
    "`vllm bench serve`. Batch, step and both rates are means over the part of a load in which the "
    "whole batch decodes and no prompt is read, from the server's counters; times to the first "
    "token and per output token are medians over requests, from first to last. Context is the "
    "prompt and half of the answer. On CPU a server counts as a GPU."
)
_WEIGHTS = (
    'Weights "full" are the full model, "full, masked" a pool of it, "exported" a checkpoint that '
    "holds only kept experts, which is what decodes in a disaggregated deployment."
)
_NOTES = {
    "throughput": f"{_SERVED} {_WEIGHTS} A row with faults is in no ratio and no figure.",
    "ratio_at_target": (
        "Throughput of a GPU over the full model's, where a user gets the target, interpolated "
        "linearly in the two rates between the two neighbouring points shown (batch: "
        f"tokens/s/user, tokens/s/GPU). {_SERVED} {_WEIGHTS}"
    ),
    "prefill_throughput": (
        "Prompt tokens a second of requests for a single token each, from the first request to the "
        f"last answer. Masked rows prune prefill too. {_WEIGHTS}"
    ),
    "accuracy_and_throughput": (
        "Accuracy of the study's table beside the throughput of the decoder at the target, from "
        "its own checkpoint if that was swept and else as a pool; the ratio is to the full model. "
        f"{_WEIGHTS}"
    ),
}


def write_throughput_tables(
    config: ReportConfig, *, rows: Sequence[Path], accuracy: Path, paper: Path, out: Path
) -> None:
    """Every table of served throughput, each as CSV and Markdown, in the folder out.

    rows are the files of sweeps, accuracy the study's table of it; paper has the paper's ratios.
    """
    found = [row for path in rows for row in read_json_rows(path)]
    served = served_table(found)
    target = config.target_tokens_per_s_per_user
    ratios = _ratios(sound(served), target, paper)
    answers = read_table(accuracy, ACCURACY_COLUMNS)
    both = trade_off_table(answers, sound(served), target=target)
    tables = [
        Table("throughput", served, SERVED_COLUMNS),
        Table("ratio_at_target", ratios, RATIO_COLUMNS, ratio_markdown(ratios)),
        Table("prefill_throughput", served_prefill_table(found), SERVED_PREFILL_COLUMNS),
        Table("accuracy_and_throughput", both, TRADE_OFF_COLUMNS),
    ]
    noted = [table._replace(note=_NOTES[table.name]) for table in tables]
    write_table_files(noted, out, config.table_digits)
    log.info("wrote %d tables of throughput under %d loads", len(tables), len(served))


def _ratios(served: pd.DataFrame, target: float, paper: Path) -> pd.DataFrame:
    """The ratios; the paper's colocated ones are of pools, and stand beside pools alone."""
    ratios = ratio_table(served, target=target, paper=paper)
    is_alone = (ratios["weights"] == Weights.EXPORTED) & (
        ratios["deployment"] == Deployment.COLOCATED
    )
    return ratios.assign(paper_ratio=ratios["paper_ratio"].mask(is_alone))
