"""Intervals by resampling items. Efron and Tibshirani, An Introduction to the Bootstrap, ch. 13.

Runs of one item are not independent, so an item is drawn with all of its runs.
Legend: I items, R runs, B resamples.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats

from slimwise.report.config import ReportConfig

_BATCH_VALUES = 4_000_000
"""Resampled values in memory at a time."""


@dataclass(frozen=True)
class Bootstrap:
    """How intervals are made; confidence is the share of resamples between their ends."""

    num_resamples: int
    confidence: float
    seed: int

    @classmethod
    def of(cls, config: ReportConfig) -> "Bootstrap":
        """The bootstrap that the configuration asks for."""
        return cls(config.bootstrap_resamples, config.confidence, config.bootstrap_seed)


@dataclass(frozen=True)
class Interval:
    """The ends of an interval, in the unit of what was resampled."""

    low: float
    high: float


def difference_interval(
    ours_IR: np.ndarray, theirs_IR: np.ndarray, weights_I: np.ndarray, bootstrap: Bootstrap
) -> Interval:
    """Percentile interval of mean(ours) - mean(theirs), paired: row i of both is one item.

    The two may have different numbers of runs.
    """
    assert len(ours_IR) == len(theirs_IR)
    differences_I = ours_IR.mean(axis=1) - theirs_IR.mean(axis=1)
    return mean_interval(differences_I[:, None], weights_I, bootstrap)


def mean_interval(values_IR: np.ndarray, weights_I: np.ndarray, bootstrap: Bootstrap) -> Interval:
    """Percentile interval of the weighted mean over items of their means over runs."""
    by_item_I = values_IR.mean(axis=1)

    def weighted_mean(items_BI: np.ndarray) -> np.ndarray:
        weights_BI = weights_I[items_BI]
        return (weights_BI * by_item_I[items_BI]).sum(axis=-1) / weights_BI.sum(axis=-1)

    return _interval(values_IR, weighted_mean, bootstrap)


def quantile_interval(values_IR: np.ndarray, quantile: float, bootstrap: Bootstrap) -> Interval:
    """Percentile interval of the linearly interpolated quantile over all items and runs."""

    def pooled_quantile(items_BI: np.ndarray) -> np.ndarray:
        return np.quantile(values_IR[items_BI], quantile, axis=(-2, -1))

    return _interval(values_IR, pooled_quantile, bootstrap)


def _interval(
    values_IR: np.ndarray, statistic: Callable[[np.ndarray], np.ndarray], bootstrap: Bootstrap
) -> Interval:
    """Of a statistic of drawn items [..., I]; NaN to NaN for one item, which tells no spread."""
    num_items = len(values_IR)
    if num_items < 2:
        return Interval(np.nan, np.nan)
    drawn = stats.bootstrap(
        (np.arange(num_items),),
        lambda items_BI, axis: statistic(items_BI),
        vectorized=True,
        n_resamples=bootstrap.num_resamples,
        batch=max(1, _BATCH_VALUES // values_IR.size),
        confidence_level=bootstrap.confidence,
        method="percentile",
        rng=np.random.default_rng(bootstrap.seed),
    ).confidence_interval
    return Interval(float(drawn.low), float(drawn.high))
