"""Further scores that graders give beside their verdict, such as lm-eval's reading of MBPP+."""

import json

import pandas as pd

from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.report.settings import by_setting, setting_of
from slimwise.report.statistics.answers import by_item_and_run, item_weights
from slimwise.report.statistics.runs import accuracy_by_run, mean_and_deviation
from slimwise.report.tables.columns import FINDING_COLUMNS

NO_FINDINGS = "No benchmark of this study has scores beside its accuracy.\n"


def findings_table(accuracies: pd.DataFrame, grades: pd.DataFrame) -> pd.DataFrame:
    """One row per row of the accuracy table and finding; empty where no grader finds more.

    share_mean and share_std are over runs, of all answers: one that was cut by the budget, which
    no grader reads, counts as no. Items weigh as in the accuracy.
    """
    settings = by_setting(grades)
    rows = [
        {**row, **finding}
        for row in accuracies.to_dict("records")
        for finding in _findings(settings[setting_of(row)])
    ]
    return pd.DataFrame(rows, columns=[*FINDING_COLUMNS, *PROVENANCE_COLUMNS])


def _findings(answers: pd.DataFrame) -> list[dict[str, object]]:
    found = answers["findings"].map(json.loads)
    names = sorted({name for each in found for name in each})
    return [
        {"finding": name, **_shares(answers.assign(said=[each.get(name, False) for each in found]))}
        for name in names
    ]


def _shares(answers: pd.DataFrame) -> dict[str, float]:
    shares_R = accuracy_by_run(by_item_and_run(answers, "said"), item_weights(answers))
    mean, deviation = mean_and_deviation(shares_R)
    return {"share_mean": mean, "share_std": deviation}
