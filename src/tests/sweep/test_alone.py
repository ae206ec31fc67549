from itertools import count

import pytest

from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.sweep.alone import run
from slimwise.sweep.config import DeploymentConfig
from slimwise.sweep.random_model import write_popular_keep_set

SERVING = {"max_model_len_tokens": 64}
FULL, SLIMWISE = {"mode": "full"}, {"mode": "slimwise", "pool": "kept"}


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Runs the stage of a server with a pool, and says in which order its points were measured."""
    write_popular_keep_set(EMBEDDED_CHECKPOINT, 32, 0, tmp_path / "kept.json")
    numbers = count()
    seen = []

    def measure(wanted, swept, setup, log):
        for point in wanted:
            if point.digest not in log:
                log.append(point.digest, {"number": next(numbers)})
        seen[:] = [log.row(point.digest)["number"] for point in wanted]

    def deployment(**changes) -> list[int]:
        settings = {
            "name": "pools",
            "backbone": "mini",
            "model": {"path": EMBEDDED_CHECKPOINT},
            "pools": {"kept": tmp_path / "kept.json"},
            "arms": [FULL],
            "load": {"concurrency": [2], "prefill_requests": 0},
            "serving": SERVING,
        }
        config = DeploymentConfig.model_validate(settings | changes)
        run(config, out=tmp_path / "rows.jsonl", work=tmp_path / "work")
        return list(seen)

    monkeypatch.setattr("slimwise.sweep.alone.measure", measure)
    return deployment


def test_another_arm_or_load_measures_only_its_own_points(measured):
    assert measured() == [0]
    assert measured(arms=[SLIMWISE, FULL]) == [1, 0]
    assert measured(load={"concurrency": [4, 2], "prefill_requests": 0}) == [2, 0]


def test_patience_and_other_ports_measure_nothing_anew(measured):
    assert measured() == [0]
    patient = SERVING | {"request_timeout_s": 9999, "port": 8001}
    assert measured(serving=patient, disaggregation={"prefill_port": 8002}) == [0]


def test_what_changes_the_speed_is_measured_anew(measured, tmp_path):
    assert measured() == [0]
    assert measured(serving=SERVING | {"max_num_seqs": 2}) == [1]
    assert measured(disaggregation={"decode_args": ["--max-num-seqs", "8"]}) == [2]
    write_popular_keep_set(EMBEDDED_CHECKPOINT, 16, 0, tmp_path / "kept.json")
    assert measured() == [3]
