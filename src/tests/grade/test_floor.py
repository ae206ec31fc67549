import json

import pandas as pd
import pytest

from slimwise.artifacts.grades import write_grades
from slimwise.errors import AccuracyFloorError
from slimwise.grade.floor import greedy_accuracies, run
from slimwise.inspect.config import BackboneConfig
from slimwise.provenance import Provenance

PROVENANCE = Provenance("abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores", {}, "pytest")


@pytest.fixture
def grades(tmp_path):
    """Greedy: three right of four; sampled: all wrong."""
    rows = [
        {
            "decoder": "full",
            "mode": "full",
            "deployment": "colocated",
            "benchmark": "mini_maths",
            "item_id": str(item),
            "run": 0,
            "decoding": decoding,
            "correct": decoding == "greedy" and item > 0,
            "hit_budget": False,
            "completion_tokens": 9,
            "extracted": "",
            "reason": "",
            "findings": "{}",
        }
        for decoding in ("greedy", "sampled")
        for item in range(4)
    ]
    write_grades(tmp_path / "grades.parquet", pd.DataFrame(rows), PROVENANCE)
    return tmp_path / "grades.parquet"


def backbone(**floors: float) -> BackboneConfig:
    return BackboneConfig(model="embedded", name="miniature", accuracy_floors=floors)


def test_a_floor_that_is_just_reached_is_recorded(grades, tmp_path):
    run(backbone(mini_maths=0.75), grades=grades, out=tmp_path / "floor.json")
    record = json.loads((tmp_path / "floor.json").read_text())
    assert record["accuracies"] == {"mini_maths": 0.75}
    assert record["floors"] == {"mini_maths": 0.75}


def test_a_model_below_its_floor_is_refused_with_value_floor_and_remedy(grades, tmp_path):
    with pytest.raises(
        AccuracyFloorError, match=r"mini_maths is 0\.750, below its floor of 0\.800"
    ):
        run(backbone(mini_maths=0.8), grades=grades, out=tmp_path / "floor.json")
    assert not (tmp_path / "floor.json").exists()


def test_a_floor_that_was_not_measured_is_refused(grades, tmp_path):
    with pytest.raises(AccuracyFloorError, match="mini_code has no greedy answers"):
        run(backbone(mini_code=0.1), grades=grades, out=tmp_path / "floor.json")


def test_a_floor_is_on_the_score_that_the_benchmark_publishes():
    ids = ["multiple_0", "parallel_0", "parallel_1", "parallel_2"]
    grades = pd.DataFrame({"item_id": ids, "correct": [True, False, False, False]})
    grades = grades.assign(benchmark="bfcl_v4_non_live_ast", decoding="greedy")
    # Two of its four categories were asked: one is right, the other wrong.
    assert greedy_accuracies(grades) == {"bfcl_v4_non_live_ast": pytest.approx(0.5)}
