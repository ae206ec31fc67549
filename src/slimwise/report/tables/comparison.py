"""Every decoder beside the full one, with intervals: the rows of tables 1 to 4."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.core.vocabulary import Criterion, DecoderId, Deployment, Distillation
from slimwise.errors import ArtifactError
from slimwise.report.order import NO_CRITERION
from slimwise.report.paper.cells import with_paper_values
from slimwise.report.statistics.answers import by_item_and_run, check_same_items
from slimwise.report.statistics.bootstrap import Bootstrap, difference_interval, quantile_interval
from slimwise.report.statistics.termination import termination_rate
from slimwise.report.tables.columns import COMPARISON_COLUMNS

_SETTING = ("decoder", "mode", "deployment", "decoding", "benchmark")
_QUANTILES = {"p50": 0.5, "p90": 0.9}

Settings = Mapping[tuple[str, ...], pd.DataFrame]
"""Graded answers by the values of _SETTING."""


def comparison_table(
    accuracies: pd.DataFrame, grades: pd.DataFrame, *, bootstrap: Bootstrap, paper: pd.DataFrame
) -> pd.DataFrame:
    """The rows of the accuracy table with what the grades say beyond it, in the same order.

    accuracy_difference is to the full decoder on the same benchmark and decoding, its interval
    paired by item; a single item has no intervals. paper are the paper's cells, which stand
    beside ours where backbone and setting are the same.
    """
    settings = {
        tuple(map(str, key)): answers for key, answers in grades.groupby(list(_SETTING), sort=False)
    }
    rows = [{**row, **_compared(row, settings, bootstrap)} for row in accuracies.to_dict("records")]
    compared = with_paper_values(pd.DataFrame(rows), paper)
    return compared[[*COMPARISON_COLUMNS, *PROVENANCE_COLUMNS]]


def _compared(
    row: Mapping[Any, Any], settings: Settings, bootstrap: Bootstrap
) -> dict[str, object]:
    ours = settings[_decoder_name(row), *(row[name] for name in _SETTING[1:])]
    theirs = _full_answers(row, settings)
    check_same_items(ours, theirs, f"{_decoder_name(row)} on {row['benchmark']}")
    lengths_IR = by_item_and_run(ours, "completion_tokens")
    return {
        "num_items": len(lengths_IR),
        **_difference(
            by_item_and_run(ours, "correct"), by_item_and_run(theirs, "correct"), bootstrap
        ),
        **_length_intervals(lengths_IR, bootstrap),
        "termination_rate": termination_rate(ours),
        "num_resamples": bootstrap.num_resamples,
        "confidence": bootstrap.confidence,
    }


def _decoder_name(row: Mapping[Any, Any]) -> str:
    if row["criterion"] == NO_CRITERION:
        return str(DecoderId())
    rule = Distillation(row["distilled"])
    return str(DecoderId(Criterion(row["criterion"]), int(row["num_kept"]), rule))


def _full_answers(row: Mapping[Any, Any], settings: Settings) -> pd.DataFrame:
    """Answers of the full decoder, of the same deployment if it was measured there."""
    for deployment in (row["deployment"], Deployment.COLOCATED):
        key = ("full", "full", str(deployment), row["decoding"], row["benchmark"])
        if key in settings:
            return settings[key]
    raise ArtifactError(
        f"no graded answers of the full decoder on {row['benchmark']}, {row['decoding']}, which "
        f"{_decoder_name(row)} is compared with. Run generate_answers and grade_answers for "
        "decoder 'full'."
    )


def _difference(
    ours_IR: np.ndarray, theirs_IR: np.ndarray, bootstrap: Bootstrap
) -> dict[str, float]:
    interval = difference_interval(ours_IR, theirs_IR, bootstrap)
    return {
        "accuracy_difference": float(ours_IR.mean() - theirs_IR.mean()),
        "accuracy_difference_low": interval.low,
        "accuracy_difference_high": interval.high,
    }


def _length_intervals(lengths_IR: np.ndarray, bootstrap: Bootstrap) -> dict[str, float]:
    intervals = {
        name: quantile_interval(lengths_IR, quantile, bootstrap)
        for name, quantile in _QUANTILES.items()
    }
    return {
        f"length_{name}_{end}_tokens": getattr(interval, end)
        for name, interval in intervals.items()
        for end in ("low", "high")
    }
