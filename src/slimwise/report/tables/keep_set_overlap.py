"""How much two criteria agree on which experts to keep."""

from collections.abc import Iterator, Sequence
from itertools import combinations

import pandas as pd

from slimwise.artifacts.keep_set import KeepSetRecord
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion
from slimwise.report.order import in_table_order
from slimwise.report.tables.columns import OVERLAP_BY_LAYER_COLUMNS, OVERLAP_COLUMNS

_PAIR = ("criterion_a", "criterion_b", "num_kept")


def overlap_table(records: Sequence[KeepSetRecord], *, backbone: str) -> pd.DataFrame:
    """One row per pair of criteria and equal m'; mean, least and greatest Jaccard over layers.

    Empty if no two criteria keep the same number of experts.
    """
    rows = [
        {
            **_named(first, second, backbone),
            "jaccard_mean": sum(jaccard) / len(jaccard),
            "jaccard_min": min(jaccard),
            "jaccard_max": max(jaccard),
        }
        for first, second in _pairs(records)
        for jaccard in [jaccard_by_layer(first.keep_set, second.keep_set)]
    ]
    return in_table_order(pd.DataFrame(rows, columns=list(OVERLAP_COLUMNS)), _PAIR)


def overlap_by_layer_table(records: Sequence[KeepSetRecord], *, backbone: str) -> pd.DataFrame:
    """The Jaccard index itself: one row per pair of criteria, equal m' and layer."""
    rows = [
        {**_named(first, second, backbone), "layer": layer, "jaccard": jaccard}
        for first, second in _pairs(records)
        for layer, jaccard in enumerate(jaccard_by_layer(first.keep_set, second.keep_set))
    ]
    return in_table_order(pd.DataFrame(rows, columns=list(OVERLAP_BY_LAYER_COLUMNS)), _PAIR)


def jaccard_by_layer(first: KeepSet, second: KeepSet) -> tuple[float, ...]:
    """Shared experts over experts that either keeps, one value a layer."""
    layers = zip(first.kept, second.kept, strict=True)
    return tuple(len({*ours} & {*theirs}) / len({*ours} | {*theirs}) for ours, theirs in layers)


def _pairs(records: Sequence[KeepSetRecord]) -> Iterator[tuple[KeepSetRecord, KeepSetRecord]]:
    """Keep sets of two criteria that keep as many experts in every layer."""
    by_vocabulary = sorted(records, key=lambda record: list(Criterion).index(record.criterion))
    for first, second in combinations(by_vocabulary, 2):
        counts = [record.keep_set.num_kept_per_layer for record in (first, second)]
        if counts[0] == counts[1] and first.criterion is not second.criterion:
            yield first, second


def _named(first: KeepSetRecord, second: KeepSetRecord, backbone: str) -> dict[str, object]:
    counts = first.keep_set.num_kept_per_layer
    return {
        "backbone": backbone,
        "criterion_a": str(first.criterion),
        "criterion_b": str(second.criterion),
        "num_kept": sum(counts) / len(counts),
        "num_experts": first.keep_set.num_experts,
    }
