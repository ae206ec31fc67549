from typing import Any

import pytest

from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.report.measured.apart import DISAGGREGATED_COLUMNS, disaggregated_table

ORIGIN = {"commit": "abc1234", "date": "2026-11-30", "hardware": "two GPUs"}


def load(num_kept: int, concurrency: int, per_user: float, per_gpu: float) -> dict[str, Any]:
    told = dict.fromkeys(DISAGGREGATED_COLUMNS, 1.0)
    measured = {"tokens_per_s_per_user": per_user, "tokens_per_s_per_gpu": per_gpu}
    point = {"num_kept": num_kept, "concurrency": concurrency, "batch_running": concurrency}
    return {**told, **point, **measured, "kind": "bench", "prefill_num_kept": 256, **ORIGIN}


FULL = [load(256, 16, 60.0, 900.0), load(256, 64, 40.0, 1100.0)]
PRUNED = [load(64, 64, 45.0, 3000.0), load(64, 16, 55.0, 1000.0)]


def table(*rows: dict[str, Any]):
    return disaggregated_table(rows, backbone="a model", target=50.0)


def test_a_decoder_stands_beside_the_full_one_at_the_target():
    found = table(*PRUNED, *FULL, {"kind": "probe", **ORIGIN})
    assert tuple(found) == (*DISAGGREGATED_COLUMNS, *PROVENANCE_COLUMNS)
    assert found[["num_kept", "concurrency"]].to_numpy().tolist() == [
        [256, 16],
        [256, 64],
        [64, 16],
        [64, 64],
    ]
    assert found["ratio_at_target"].tolist() == [1.0, 1.0, 2.0, 2.0]
    assert set(found["backbone"]) == {"a model"}


@pytest.mark.parametrize("rows", [PRUNED, [*PRUNED, *FULL[:1]], [*PRUNED[:1], *FULL]])
def test_there_is_no_ratio_where_points_do_not_enclose_the_target(rows):
    pruned = table(*rows).query("num_kept == 64")
    assert pruned["ratio_at_target"].isna().all()


def test_a_point_that_was_measured_again_counts_once():
    assert table(*FULL, load(256, 16, 70.0, 950.0))["tokens_per_s_per_user"].tolist() == [
        70.0,
        40.0,
    ]
