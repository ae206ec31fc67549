"""Accuracy by the categories of which a benchmark's score is a mean, such as BFCL's."""

import pandas as pd

from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.benchmarks.tool_calls.categories import MEANS, category_of
from slimwise.report.settings import by_setting, setting_of
from slimwise.report.statistics.answers import by_item_and_run
from slimwise.report.statistics.runs import mean_and_deviation
from slimwise.report.tables.columns import CATEGORY_COLUMNS

NO_CATEGORIES = "No benchmark of this study has categories.\n"


def categories_table(accuracies: pd.DataFrame, grades: pd.DataFrame) -> pd.DataFrame:
    """One row per row of the accuracy table and category; empty where no benchmark has any.

    accuracy_mean and accuracy_std are over runs, of the category's items, which count alike.
    """
    settings = by_setting(grades)
    rows = [
        {**row, "category": category, **_measured(answers)}
        for row in accuracies.to_dict("records")
        if row["benchmark"] in MEANS
        for category, answers in _by_category(settings[setting_of(row)])
    ]
    return pd.DataFrame(rows, columns=[*CATEGORY_COLUMNS, *PROVENANCE_COLUMNS])


def _by_category(answers: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    categories = answers["item_id"].map(category_of)
    return [(str(name), part) for name, part in answers.groupby(categories)]


def _measured(answers: pd.DataFrame) -> dict[str, object]:
    correct_IR = by_item_and_run(answers, "correct")
    mean, deviation = mean_and_deviation(correct_IR.mean(axis=0))
    return {"num_items": len(correct_IR), "accuracy_mean": mean, "accuracy_std": deviation}
