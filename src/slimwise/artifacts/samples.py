"""Saved answers of one decoder: everything that grading and the length statistics need."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from slimwise.artifacts.parquet_rows import read_rows, write_row_batches
from slimwise.artifacts.row_types import conform_rows
from slimwise.provenance import Provenance

SCHEMA = "slimwise.samples/2"
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
    "reasoning": "str",
    "thought_split": "bool",
    "tool_calls": "str",
    "finish_reason": "str",
    "prompt_tokens": "int64",
    "completion_tokens": "int64",
    "latency_s": "float64",
    "attempts": "int64",
    "reference": "str",
}
"""content is the assistant turn; where thought_split, its thought, if any, stands in reasoning.

tool_calls is JSON: [{"name", "arguments" (text)}]. latency is that of the attempt which succeeded,
in seconds. reference is the item's, as JSON text.
"""


def write_samples(path: Path, frames: Iterable[pd.DataFrame], provenance: Provenance) -> None:
    """The answers as parquet, a batch at a time: those of a whole benchmark may fill gigabytes.

    ArtifactError if a column is missing or of another type.
    """
    conformed = (conform_rows(frame, COLUMNS, str(path)) for frame in frames)
    write_row_batches(path, conformed, SCHEMA, provenance)


def read_samples(path: Path) -> pd.DataFrame:
    """The answers with exactly the columns above; ArtifactError if the file is not that."""
    return conform_rows(read_rows(path, SCHEMA, list(COLUMNS)), COLUMNS, str(path))
