"""Uniform split points against ordinary distillation, paired by the seed of training."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from slimwise.artifacts.json_rows import Row, latest
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.core.vocabulary import Distillation, ServingMode
from slimwise.report.measured.columns import SPLIT_RULE_COLUMNS
from slimwise.report.statistics.runs import mean_and_deviation

MINIATURE = "mini"
_SETTING = ["criterion", "num_kept", "steps", "benchmark", "decoding"]


def split_rule_table(rows: Iterable[Row], *, confidence: float) -> pd.DataFrame:
    """One row per pool, number of steps, benchmark and decoding that both rules were trained for.

    difference is uniform - zero of the same seed; its interval is Student's over seeds, on one set
    of items, and missing for one seed.
    """
    found = latest(rows, [*_SETTING, "rule", "seed", "mode"])
    table = pd.DataFrame(
        _compared(found, confidence), columns=[*SPLIT_RULE_COLUMNS, *PROVENANCE_COLUMNS]
    )
    ordered = table.sort_values(
        ["steps", "criterion", "num_kept"], ascending=[True, False, True], kind="stable"
    )
    return ordered.assign(backbone=MINIATURE, confidence=confidence).reset_index(drop=True)


def difference_interval(differences: np.ndarray, confidence: float) -> tuple[float, float]:
    """Student's interval of the mean of differences; NaN to NaN for one, which tells no spread."""
    if len(differences) < 2:
        return np.nan, np.nan
    quantile = stats.t.ppf((1 + confidence) / 2, len(differences) - 1)
    half = float(quantile * differences.std(ddof=1) / np.sqrt(len(differences)))
    return float(differences.mean()) - half, float(differences.mean()) + half


def _compared(rows: pd.DataFrame, confidence: float) -> Iterator[dict[str, Any]]:
    for key, trained in rows[rows["steps"] > 0].groupby(_SETTING, sort=False):
        by_seed = trained.pivot(index="seed", columns="rule", values="accuracy")
        rules = [str(Distillation.UNIFORM), str(Distillation.ZERO)]
        if not set(rules) <= set(by_seed.columns):
            continue
        uniform_S, zero_S = (by_seed.dropna()[rule].to_numpy() for rule in rules)
        last = trained.iloc[-1]
        named = dict(zip(_SETTING, key, strict=True))
        yield {
            **{name: last[name] for name in ("items", *PROVENANCE_COLUMNS)},
            **named,
            "seeds": len(uniform_S),
            **_untrained(rows, named),
            **_spread("uniform", uniform_S),
            **_spread("zero", zero_S),
            **_difference(uniform_S - zero_S, confidence),
        }


def _spread(rule: str, accuracy_S: np.ndarray) -> dict[str, float]:
    mean, deviation = mean_and_deviation(accuracy_S)
    return {f"accuracy_{rule}_mean": mean, f"accuracy_{rule}_std": deviation}


def _difference(differences_S: np.ndarray, confidence: float) -> dict[str, float]:
    low, high = difference_interval(differences_S, confidence)
    mean = float(differences_S.mean())
    return {"difference_mean": mean, "difference_low": low, "difference_high": high}


def _untrained(rows: pd.DataFrame, named: dict[str, Any]) -> dict[str, float]:
    """The full model, and the same pool before any training."""
    alike = (rows["benchmark"] == named["benchmark"]) & (rows["decoding"] == named["decoding"])
    here = rows[(rows["steps"] == 0) & alike]
    same = (here["criterion"] == named["criterion"]) & (here["num_kept"] == named["num_kept"])
    is_full = here["mode"] == ServingMode.FULL
    return {
        "accuracy_full": _only(here.loc[is_full, "accuracy"]),
        "accuracy_undistilled": _only(here.loc[same & ~is_full, "accuracy"]),
    }


def _only(values: pd.Series) -> float:
    return float(values.iloc[-1]) if len(values) else np.nan
