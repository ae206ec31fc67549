"""How much two criteria agree on which experts to keep."""

from collections.abc import Sequence
from itertools import combinations

import pandas as pd

from slimwise.artifacts.keep_set import KeepSetRecord
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion
from slimwise.report.order import in_table_order
from slimwise.report.tables.columns import OVERLAP_COLUMNS


def overlap_table(records: Sequence[KeepSetRecord], *, backbone: str) -> pd.DataFrame:
    """One row per pair of criteria and equal m'; mean, least and greatest Jaccard over layers.

    Empty if no two criteria keep the same number of experts.
    """
    by_vocabulary = sorted(records, key=lambda record: list(Criterion).index(record.criterion))
    rows = [
        _row(first, second, backbone)
        for first, second in combinations(by_vocabulary, 2)
        if first.keep_set.num_kept_per_layer == second.keep_set.num_kept_per_layer
        and first.criterion is not second.criterion
    ]
    table = pd.DataFrame(rows, columns=list(OVERLAP_COLUMNS))
    return in_table_order(table, ("criterion_a", "criterion_b", "num_kept"))


def jaccard_by_layer(first: KeepSet, second: KeepSet) -> tuple[float, ...]:
    """Shared experts over experts that either keeps, one value a layer."""
    layers = zip(first.kept, second.kept, strict=True)
    return tuple(len({*ours} & {*theirs}) / len({*ours} | {*theirs}) for ours, theirs in layers)


def _row(first: KeepSetRecord, second: KeepSetRecord, backbone: str) -> dict[str, object]:
    jaccard = jaccard_by_layer(first.keep_set, second.keep_set)
    counts = first.keep_set.num_kept_per_layer
    return {
        "backbone": backbone,
        "criterion_a": str(first.criterion),
        "criterion_b": str(second.criterion),
        "num_kept": sum(counts) / len(counts),
        "num_experts": first.keep_set.num_experts,
        "jaccard_mean": sum(jaccard) / len(jaccard),
        "jaccard_min": min(jaccard),
        "jaccard_max": max(jaccard),
    }
