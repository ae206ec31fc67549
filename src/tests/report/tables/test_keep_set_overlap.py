import pytest

from slimwise.artifacts.keep_set import KeepSetRecord
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion
from slimwise.report.tables.columns import OVERLAP_BY_LAYER_COLUMNS, OVERLAP_COLUMNS
from slimwise.report.tables.keep_set_overlap import overlap_by_layer_table, overlap_table


def record(criterion: Criterion, *kept: tuple[int, ...]) -> KeepSetRecord:
    return KeepSetRecord(KeepSet(kept, num_experts=8, top_k=1), criterion, "digest", "model")


def test_jaccard_of_each_pair_over_layers():
    rows = overlap_table(
        [
            record(Criterion.REAP, (0, 1, 2), (0, 1, 2)),
            record(Criterion.MASS, (0, 1, 2), (2, 3, 4)),
        ],
        backbone="mini",
    )
    # Layer 0 shares all of three experts, layer 1 one of five.
    expected = ["mini", "mass", "reap", 3, 8, pytest.approx(0.6), 0.2, 1.0]
    assert list(rows.columns) == list(OVERLAP_COLUMNS)
    assert rows.to_numpy().tolist() == [expected]


def test_only_equal_counts_are_compared_and_larger_ones_come_first():
    rows = overlap_table(
        [
            record(Criterion.MASS, (0,)),
            record(Criterion.EAN, (0,)),
            record(Criterion.MASS, (0, 1)),
            record(Criterion.EAN, (0, 1)),
            record(Criterion.REAP, (0, 1, 2)),
        ],
        backbone="mini",
    )
    pairs = rows[["criterion_a", "criterion_b", "num_kept"]].to_numpy().tolist()
    assert pairs == [["mass", "ean", 2], ["mass", "ean", 1]]


def test_one_criterion_gives_an_empty_table():
    rows = overlap_table([record(Criterion.REAP, (0, 1))], backbone="mini")
    assert rows.empty
    assert list(rows.columns) == list(OVERLAP_COLUMNS)


def test_each_layer_has_a_row():
    rows = overlap_by_layer_table(
        [
            record(Criterion.REAP, (0, 1, 2), (0, 1, 2)),
            record(Criterion.MASS, (0, 1, 2), (2, 3, 4)),
        ],
        backbone="mini",
    )
    assert list(rows.columns) == list(OVERLAP_BY_LAYER_COLUMNS)
    assert rows[["layer", "jaccard"]].to_numpy().tolist() == [[0, 1.0], [1, 0.2]]
