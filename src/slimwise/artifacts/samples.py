"""Saved answers of one decoder: everything that grading and the length statistics need."""

from pathlib import Path

import pandas as pd

from slimwise.artifacts.parquet_rows import read_rows, write_rows
from slimwise.artifacts.row_types import conform_rows
from slimwise.provenance import Provenance

SCHEMA = "slimwise.samples/1"
COLUMNS = {
    "decoder": "str",
    "mode": "str",
    "deployment": "str",
    "benchmark": "str",
    "item_id": "str",
    "run": "int64",
    "decoding": "str",
    "seed": "int64",
    "content": "str",
    "finish_reason": "str",
    "prompt_tokens": "int64",
    "completion_tokens": "int64",
    "latency_s": "float64",
    "reference": "str",
}
"""content is the raw assistant turn, reference the item's as JSON text, latency in seconds."""


def write_samples(path: Path, frame: pd.DataFrame, provenance: Provenance) -> None:
    """The answers as parquet; ArtifactError if a column is missing or of another type."""
    write_rows(path, conform_rows(frame, COLUMNS, str(path)), SCHEMA, provenance)


def read_samples(path: Path) -> pd.DataFrame:
    """The answers with exactly the columns above; ArtifactError if the file is not that."""
    return conform_rows(read_rows(path, SCHEMA, list(COLUMNS)), COLUMNS, str(path))
