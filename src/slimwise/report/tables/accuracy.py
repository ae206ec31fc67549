"""Accuracy and output length of every decoder on every benchmark. SlimWise, tables 1 to 4."""

from collections.abc import Hashable

import pandas as pd

from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.core.vocabulary import DecoderId
from slimwise.errors import ArtifactError
from slimwise.report.order import NO_CRITERION, in_table_order
from slimwise.report.settings import SETTING
from slimwise.report.statistics.answers import by_item_and_run, item_weights
from slimwise.report.statistics.runs import accuracy_by_run, mean_and_deviation
from slimwise.report.statistics.termination import budget_hit_rate
from slimwise.report.tables.columns import ACCURACY_COLUMNS

_TABLE_ORDER = (
    "criterion",
    "num_kept",
    "distilled",
    "mode",
    "deployment",
    "decoding",
    "benchmark",
)


def accuracy_table(grades: pd.DataFrame, *, backbone: str, num_experts: int) -> pd.DataFrame:
    """One row per decoder, mode, deployment, decoding and benchmark, full decoder first.

    accuracy_mean and accuracy_std (sample standard deviation, missing for one run) are over
    runs; lengths are over all answers of all runs, those cut by the budget too, as linearly
    interpolated quantiles. The full decoder has criterion "none" and num_kept = num_experts.
    The answers bring their provenance columns, which each row keeps.
    """
    if "full" not in set(grades["decoder"]):
        raise ArtifactError(
            "no graded answers of the full decoder, which all others are compared with. Run "
            "generate_answers and grade_answers for decoder 'full'."
        )
    _check_runs(grades)
    rows = [
        {**_named(setting, backbone, num_experts), **_measured(answers), **_origin(answers)}
        for setting, answers in grades.groupby(list(SETTING), sort=False)
    ]
    table = pd.DataFrame(rows, columns=[*ACCURACY_COLUMNS, *PROVENANCE_COLUMNS])
    return in_table_order(table, _TABLE_ORDER)


def _named(setting: tuple[Hashable, ...], backbone: str, num_experts: int) -> dict[str, object]:
    named = dict(zip(SETTING, setting, strict=True))
    decoder = DecoderId.parse(str(named.pop("decoder")))
    return {
        "backbone": backbone,
        "criterion": str(decoder.criterion or NO_CRITERION),
        "num_kept": decoder.num_kept or num_experts,
        "distilled": str(decoder.distilled),
        **named,
    }


def _measured(answers: pd.DataFrame) -> dict[str, object]:
    accuracy_R = accuracy_by_run(by_item_and_run(answers, "correct"), item_weights(answers))
    mean, deviation = mean_and_deviation(accuracy_R)
    lengths = answers["completion_tokens"]
    return {
        "runs": len(accuracy_R),
        "accuracy_mean": mean,
        "accuracy_std": deviation,
        "length_p50_tokens": lengths.quantile(0.5),
        "length_p90_tokens": lengths.quantile(0.9),
        "budget_hit_rate": budget_hit_rate(answers),
    }


def _origin(answers: pd.DataFrame) -> dict[Hashable, object]:
    return answers[list(PROVENANCE_COLUMNS)].iloc[0].to_dict()


def _check_runs(grades: pd.DataFrame) -> None:
    """ArtifactError unless every run of a setting graded the same items, each once."""
    repeated = grades[grades.duplicated([*SETTING, "run", "item_id"])]
    if not repeated.empty:
        raise ArtifactError(f"{_where(repeated)} is graded twice: delete one of the grade files.")
    items = grades.groupby([*SETTING, "item_id"])["run"].transform("size")
    runs = grades.groupby(list(SETTING))["run"].transform("nunique")
    partial = grades[items < runs]
    if not partial.empty:
        raise ArtifactError(
            f"{_where(partial)} is missing from another run of the same setting: its evaluation "
            "is incomplete. Run generate_answers and grade_answers again for that decoder."
        )


def _where(answers: pd.DataFrame) -> str:
    first = answers.iloc[0]
    setting = ", ".join(str(first[name]) for name in SETTING)
    return f"item {first['item_id']} of run {first['run']} ({setting})"
