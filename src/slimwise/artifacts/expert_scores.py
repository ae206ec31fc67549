"""One row per layer and expert: its routed tokens and its score by every criterion. Torch-free."""

from pathlib import Path

import numpy as np
import pandas as pd

from slimwise.artifacts.parquet_rows import read_rows, write_rows
from slimwise.core.vocabulary import Criterion
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

SCHEMA = "slimwise.expert_scores/1"
COLUMNS = ("layer", "expert", "tokens", *map(str, Criterion))


def write_expert_scores(path: Path, frame: pd.DataFrame, provenance: Provenance) -> None:
    """Write the frame, whose columns are COLUMNS, sorted by layer, then expert."""
    ordered = frame.loc[:, list(COLUMNS)].sort_values(["layer", "expert"])
    kinds = {name: "int64" if name in ("layer", "expert") else "float64" for name in COLUMNS}
    write_rows(path, ordered.astype(kinds), SCHEMA, provenance)


def read_expert_scores(path: Path) -> pd.DataFrame:
    """The frame, complete: every layer has every expert, and all scores are finite and >= 0.

    ArtifactError if the file is missing, damaged, or says otherwise.
    """
    frame = read_rows(path, SCHEMA, COLUMNS)
    num_layers, num_experts = frame["layer"].max() + 1, frame["expert"].max() + 1
    complete = len(frame) > 0 and np.array_equal(
        frame[["layer", "expert"]].to_numpy(), list(np.ndindex(int(num_layers), int(num_experts)))
    )
    if not complete:
        raise ArtifactError(
            f"{path} lacks rows: expected every expert of every layer once, in order. Delete "
            "it and run the study again."
        )
    values = frame.loc[:, list(COLUMNS[2:])].to_numpy(float)
    faulty = ~(np.isfinite(values) & (values >= 0)).all(axis=1)
    if faulty.any():
        row = frame[faulty].iloc[0]
        raise ArtifactError(
            f"{path}, layer {row['layer']:.0f}, expert {row['expert']:.0f}: scores must be finite "
            "and >= 0. Run the collect_stats and score_experts rules again."
        )
    return frame
