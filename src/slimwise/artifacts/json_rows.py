"""Rows that measurements append to a file as they go, one JSON object a line."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from slimwise.artifacts.strict_json import parse_json
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.errors import ArtifactError

Row = Mapping[str, Any]


def read_json_rows(path: Path) -> list[Row]:
    """Every row of the file, in its order.

    ArtifactError if the file has no rows, or one that is no object with its provenance.
    """
    try:
        rows = [parse_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as failure:
        raise ArtifactError(
            f"cannot read the measured rows {path}: {failure}. Measure them again."
        ) from failure
    if not rows:
        raise ArtifactError(f"{path} has no rows. Measure them again.")
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, dict) or not row.keys() >= set(PROVENANCE_COLUMNS):
            raise ArtifactError(
                f"line {number} of {path} is no object with {', '.join(PROVENANCE_COLUMNS)}. "
                "Delete that line, or measure the rows again."
            )
    return rows


def latest(rows: Iterable[Row], key: Sequence[str]) -> pd.DataFrame:
    """The last row of each key, in the order in which the keys last appear."""
    frame = pd.DataFrame(list(rows))
    return frame.drop_duplicates(list(key), keep="last").reset_index(drop=True)
