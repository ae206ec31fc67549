"""Writing the log of a distillation as its steps end."""

import csv
from collections.abc import Sequence
from pathlib import Path

from slimwise.artifacts.distill_log import LOG_COLUMNS
from slimwise.distill.batches import SplitSequence


def append_row(path: Path, row: Sequence[object]) -> None:
    """Append one step's row, in the order of LOG_COLUMNS."""
    assert len(row) == len(LOG_COLUMNS)
    with path.open("a", newline="") as log:
        csv.writer(log, lineterminator="\n").writerow(row)


def cut_log(path: Path, num_rows: int) -> None:
    """Keep the header and that many rows: what a killed run logged after its last saved step."""
    kept = path.read_text(errors="replace").splitlines()[1 : num_rows + 1] if path.exists() else []
    path.write_text("\n".join([",".join(LOG_COLUMNS), *kept]) + "\n")


def token_counts(sequences: Sequence[SplitSequence]) -> tuple[int, int]:
    """Tokens of the sequences, and those of them that are the student's."""
    num_tokens = sum(len(sequence.ids) for sequence in sequences)
    return num_tokens, num_tokens - sum(sequence.split for sequence in sequences)
