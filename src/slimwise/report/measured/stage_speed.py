"""Speed of scoring, distilling and exporting, beside other ways to do the same."""

from collections.abc import Iterable

import pandas as pd

from slimwise.artifacts.json_rows import Row, latest
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.backbones.published_names import PUBLISHED_NAMES
from slimwise.report.measured.columns import (
    DISTILL_SPEED_COLUMNS,
    EXPORT_SPEED_COLUMNS,
    SCORING_SPEED_COLUMNS,
)

_MINUTES_AN_HOUR = 60


def scoring_table(rows: Iterable[Row]) -> pd.DataFrame:
    """One row per shape and implementation; mixture_hours are for the paper's six components."""
    found = latest(rows, ["shape", "num_layers", "implementation"])
    found = found.assign(
        backbone=found["shape"].map(PUBLISHED_NAMES),
        mixture_hours=found["mixture_minutes"] / _MINUTES_AN_HOUR,
    )
    is_reap = found["implementation"] == "reap_observer"
    reap = found[is_reap].set_index("shape")["tokens_per_s"]
    ratio = found["tokens_per_s"] / found["shape"].map(reap)
    table = found.assign(ratio_to_reap_observer=ratio)
    return table[[*SCORING_SPEED_COLUMNS, *PROVENANCE_COLUMNS]]


def distillation_table(rows: Iterable[Row]) -> pd.DataFrame:
    """One row per depth, implementation, route and length, the whole model first.

    Hours of training are for the whole model only; ratios are to two copies of the same depth.
    """
    key = ["shape", "num_layers", "sequence_tokens"]
    found = latest(rows, [*key, "implementation", "route"])
    found = found.assign(backbone=found["shape"].map(PUBLISHED_NAMES))
    copies = found.loc[found["implementation"] == "two_copies", [*key, "tokens_per_s"]]
    copies = copies.rename(columns={"tokens_per_s": "two_copies_tokens_per_s"})
    found = found.merge(copies, on=key, how="left", validate="many_to_one")
    is_whole = found["num_layers"] == found["num_layers"].max()
    table = found.assign(
        ratio_to_two_copies=found["tokens_per_s"] / found["two_copies_tokens_per_s"],
        training_hours=found["training_hours"].where(is_whole),
    ).sort_values(
        ["num_layers", "implementation", "route", "sequence_tokens"],
        ascending=[False, True, True, True],
        kind="stable",
    )
    return table[[*DISTILL_SPEED_COLUMNS, *PROVENANCE_COLUMNS]].reset_index(drop=True)


def export_table(rows: Iterable[Row]) -> pd.DataFrame:
    """One row per checkpoint and machine: GiB/s of what is written, beside a copy of its bytes."""
    found = latest(rows, ["shape", "num_layers", "num_kept", "hardware"])
    table = found.assign(
        ratio_to_copy=found["gib_per_s"] / found["copy_gib_per_s"],
        repeats=found["export_s"].map(len),
    )
    return table[[*EXPORT_SPEED_COLUMNS, *PROVENANCE_COLUMNS]]
