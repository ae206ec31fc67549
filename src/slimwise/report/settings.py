"""Graded answers by setting: one decoder in one mode, decoded one way, on one benchmark."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from slimwise.core.vocabulary import Criterion, DecoderId, Distillation
from slimwise.report.order import NO_CRITERION

SETTING = ("decoder", "mode", "deployment", "decoding", "benchmark")
Settings = Mapping[tuple[str, ...], pd.DataFrame]
"""Graded answers by the values of SETTING."""


def by_setting(grades: pd.DataFrame) -> Settings:
    """The answers of each setting, in the order in which settings first appear."""
    return {
        tuple(map(str, key)): answers for key, answers in grades.groupby(list(SETTING), sort=False)
    }


def setting_of(row: Mapping[Any, Any]) -> tuple[str, ...]:
    """The setting that a row of the accuracy table measures."""
    return decoder_name(row), *(str(row[name]) for name in SETTING[1:])


def decoder_name(row: Mapping[Any, Any]) -> str:
    """The decoder of a table's row, as paths and grades spell it."""
    if row["criterion"] == NO_CRITERION:
        return str(DecoderId())
    rule = Distillation(row["distilled"])
    return str(DecoderId(Criterion(row["criterion"]), int(row["num_kept"]), rule))
