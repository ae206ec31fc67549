"""Rows of a result table that the paper's tables and figures are about."""

import pandas as pd

from slimwise.core.vocabulary import Criterion, Decoding
from slimwise.report.order import NO_CRITERION

_USE = ["criterion", "num_kept", "mode", "distilled", "decoding", "benchmark"]


def reported(rows: pd.DataFrame) -> pd.DataFrame:
    """The sampled rows, as the paper's tables; the greedy ones of a study that samples nothing."""
    sampled = rows[rows["decoding"] == Decoding.SAMPLED]
    return rows if sampled.empty else sampled


def once_deployed(rows: pd.DataFrame) -> pd.DataFrame:
    """Each use of a decoder once: colocated, in table order, where it is deployed both ways."""
    return rows.drop_duplicates(_USE)


def at_half(rows: pd.DataFrame) -> pd.DataFrame:
    """The full decoder and those whose number of kept experts is nearest to half of them.

    Of two that are equally near the larger one.
    """
    if rows.empty:
        return rows
    is_full = rows["criterion"] == NO_CRITERION
    num_experts = rows.loc[is_full, "num_kept"].iloc[0]
    counts = sorted(rows.loc[~is_full, "num_kept"].unique(), reverse=True)
    nearest = min(counts, key=lambda count: abs(count - num_experts / 2), default=num_experts)
    return rows[is_full | (rows["num_kept"] == nearest)]


def of_leading_criterion(rows: pd.DataFrame) -> pd.DataFrame:
    """The full decoder and those of REAP, the paper's choice, or of the study's first criterion."""
    criteria = [name for name in rows["criterion"].unique() if name != NO_CRITERION]
    leading = Criterion.REAP if Criterion.REAP in criteria else next(iter(criteria), NO_CRITERION)
    return rows[rows["criterion"].isin([NO_CRITERION, leading])]
