"""Every decoder beside the full one, with intervals: the rows of tables 1 to 4."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.core.vocabulary import Deployment, ServingMode
from slimwise.errors import ArtifactError
from slimwise.report.order import NO_CRITERION
from slimwise.report.paper.cells import with_paper_values
from slimwise.report.settings import Settings, by_setting, decoder_name, setting_of
from slimwise.report.statistics.answers import by_item_and_run, check_same_items, item_weights
from slimwise.report.statistics.bootstrap import Bootstrap, difference_interval, quantile_interval
from slimwise.report.statistics.runs import accuracy_by_run
from slimwise.report.statistics.termination import termination_rate
from slimwise.report.tables.columns import COMPARISON_COLUMNS

_QUANTILES = {"p50": 0.5, "p90": 0.9}


def comparison_table(
    accuracies: pd.DataFrame, grades: pd.DataFrame, *, bootstrap: Bootstrap, paper: pd.DataFrame
) -> pd.DataFrame:
    """The rows of the accuracy table with what the grades say beyond it, in the same order.

    accuracy_difference is to the full decoder on the same benchmark and decoding, its interval
    paired by item; a single item has no intervals. paper are the paper's cells, which stand
    beside ours where backbone and setting are the same.
    """
    settings = by_setting(grades)
    rows = [{**row, **_compared(row, settings, bootstrap)} for row in accuracies.to_dict("records")]
    compared = with_paper_values(pd.DataFrame(rows), paper)
    return compared[[*COMPARISON_COLUMNS, *PROVENANCE_COLUMNS]]


def _compared(
    row: Mapping[Any, Any], settings: Settings, bootstrap: Bootstrap
) -> dict[str, object]:
    ours = settings[setting_of(row)]
    theirs = _full_answers(row, settings)
    check_same_items(ours, theirs, f"{decoder_name(row)} on {row['benchmark']}")
    lengths_IR = by_item_and_run(ours, "completion_tokens")
    return {
        "num_items": len(lengths_IR),
        **_difference(ours, theirs, bootstrap),
        **_length_intervals(lengths_IR, bootstrap),
        "termination_rate": termination_rate(ours),
        "num_resamples": bootstrap.num_resamples,
        "confidence": bootstrap.confidence,
    }


def _full_answers(row: Mapping[Any, Any], settings: Settings) -> pd.DataFrame:
    """Answers of the full decoder, of the same deployment if it was measured there."""
    for deployment in (row["deployment"], Deployment.COLOCATED):
        full = {"criterion": NO_CRITERION, "mode": ServingMode.FULL, "deployment": deployment}
        key = setting_of({**row, **full})
        if key in settings:
            return settings[key]
    raise ArtifactError(
        f"no graded answers of the full decoder on {row['benchmark']}, {row['decoding']}, which "
        f"{decoder_name(row)} is compared with. Run generate_answers and grade_answers for "
        "decoder 'full'."
    )


def _difference(ours: pd.DataFrame, theirs: pd.DataFrame, bootstrap: Bootstrap) -> dict[str, float]:
    ours_IR, theirs_IR = (by_item_and_run(answers, "correct") for answers in (ours, theirs))
    weights_I = item_weights(ours)
    means = [accuracy_by_run(correct_IR, weights_I).mean() for correct_IR in (ours_IR, theirs_IR)]
    interval = difference_interval(ours_IR, theirs_IR, weights_I, bootstrap)
    return {
        "accuracy_difference": float(means[0] - means[1]),
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
