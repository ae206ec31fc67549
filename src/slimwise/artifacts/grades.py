"""Verdicts on the saved answers of one decoder, with the lengths that are reported beside them."""

from pathlib import Path

import pandas as pd

from slimwise.artifacts.parquet_rows import read_rows, write_rows
from slimwise.artifacts.row_types import conform_rows
from slimwise.provenance import Provenance

SCHEMA = "slimwise.grades/2"
UNENDED_THOUGHT = "the thought never ended"
"""Reason of an answer that stopped by itself and is all thought."""

COLUMNS = {
    "decoder": "str",
    "mode": "str",
    "deployment": "str",
    "benchmark": "str",
    "item_id": "str",
    "run": "int64",
    "decoding": "str",
    "correct": "bool",
    "hit_budget": "bool",
    "completion_tokens": "int64",
    "extracted": "str",
    "reason": "str",
    "findings": "str",
}
"""extracted is what the grader read from the answer, reason why it is wrong, "" if it is right.

findings is JSON: further yes-or-no results by name.
"""


def write_grades(path: Path, frame: pd.DataFrame, provenance: Provenance) -> None:
    """The verdicts as parquet; ArtifactError if a column is missing or of another type."""
    write_rows(path, conform_rows(frame, COLUMNS, str(path)), SCHEMA, provenance)


def read_grades(path: Path) -> pd.DataFrame:
    """The verdicts with exactly the columns above; ArtifactError if the file is not that."""
    return conform_rows(read_rows(path, SCHEMA, list(COLUMNS)), COLUMNS, str(path))
