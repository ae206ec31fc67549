import json
from itertools import count

import pytest

from slimwise.artifacts.backbone_record import write_backbone_record
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.provenance import Provenance
from slimwise.sweep.config import LoadConfig
from slimwise.sweep.run import run

from .backbone_record import RECORD

PROVENANCE = Provenance("abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores", {}, "pytest")
LOAD = LoadConfig(concurrency=(2, 8), prefill_requests=0)
SERVING = ServingConfig(max_model_len_tokens=64)


@pytest.fixture
def sweep(monkeypatch, tmp_path):
    """Runs the stage of a decoder, and says in which order its points were ever measured."""
    numbers = count()

    def measure(wanted, swept, setup, log):
        for point in wanted:
            if point.digest not in log:
                log.append(point.digest, {"number": next(numbers)})

    def swept(
        decoder: str, *, load: LoadConfig = LOAD, serving: ServingConfig = SERVING, **layout
    ) -> list[int]:
        run(
            load,
            serving=serving,
            disaggregation=DisaggregationConfig(**layout),
            backbone=tmp_path / "backbone.json",
            decoder=decoder,
            files=(),
            out=tmp_path / "rows.jsonl",
            work=tmp_path / "work",
        )
        return [json.loads(line)["number"] for line in (tmp_path / "rows.jsonl").open()]

    monkeypatch.setattr("slimwise.sweep.run.measure", measure)
    write_backbone_record(tmp_path / "backbone.json", RECORD, PROVENANCE)
    return swept


def test_one_more_load_measures_one_more_point(sweep):
    assert sweep("full") == [0, 1]
    assert sweep("full", load=LOAD.model_copy(update={"concurrency": (8, 4)})) == [1, 2]


def test_two_servers_that_start_otherwise_are_measured_anew(sweep):
    assert sweep("full-disaggregated") == [0, 1]
    assert sweep("full-disaggregated", decode_args=["--max-num-seqs", "8"]) == [2, 3]


def test_other_ports_of_two_servers_measure_nothing_anew(sweep):
    assert sweep("full-disaggregated") == [0, 1]
    places = {"prefill_port": 8001, "decode_port": 8002, "kv_host": "10.0.0.3"}
    assert sweep("full-disaggregated", **places) == [0, 1]
    assert sweep("full-disaggregated", shares_gpus=True) == [2, 3]


def test_how_two_servers_start_says_nothing_of_one(sweep):
    assert sweep("full") == [0, 1]
    assert sweep("full", decode_args=["--max-num-seqs", "8"]) == [0, 1]


def test_more_patience_measures_nothing_anew(sweep):
    assert sweep("full") == [0, 1]
    patient = SERVING.model_copy(update={"request_timeout_s": 9999, "port": 8001})
    assert sweep("full", serving=patient) == [0, 1]
    assert sweep("full", serving=SERVING.model_copy(update={"max_num_seqs": 2})) == [2, 3]
