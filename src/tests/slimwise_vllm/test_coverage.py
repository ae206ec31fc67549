"""Legend: L MoE layers, E experts, H phases and padding."""

import json
from pathlib import Path

import pytest
import torch

from slimwise.artifacts.pool_files import PoolFiles
from slimwise.errors import ArtifactError
from slimwise_vllm.coverage import Coverage, batch_bucket
from slimwise_vllm.coverage_metrics import CoverageMetrics, coverage_metrics
from slimwise_vllm.settings import PluginSettings


def coverage(path: Path, interval=1, export_s=1e9) -> Coverage:
    settings = PluginSettings(
        pools={"half": PoolFiles(keep_set=Path("half.json"))},
        coverage_file=path,
        coverage_interval_steps=interval,
        coverage_export_s=export_s,
    )
    return Coverage(settings, (2, 4, 2), torch.device("cpu"))


def step(counter: Coverage, num_tokens, counts_HLE):
    counter.begin_step(num_tokens, exact_up_to=8)
    counter.counts_HLE += torch.tensor(counts_HLE, dtype=torch.int32)


NOTHING = [[0, 0, 0, 0], [0, 0, 0, 0]]
DECODE_OF_TWO = [[1, 1, 2, 0], [4, 0, 0, 0]]
PADDING = [[9, 9, 9, 9], [9, 9, 9, 9]]


def test_distinct_experts_are_a_mean_over_the_steps_of_a_batch(tmp_path):
    counter = coverage(tmp_path / "c.json")
    step(counter, [0, 2], [NOTHING, DECODE_OF_TWO, PADDING])
    step(counter, [0, 2], [NOTHING, [[4, 0, 0, 0], [4, 0, 0, 0]], PADDING])
    step(counter, [9, 1], [[[9, 9, 0, 0], [9, 0, 9, 0]], [[1, 1, 0, 0], [1, 1, 0, 0]], NOTHING])
    report = counter.report()
    assert report["steps"] == [
        {
            "phase": "prefill",
            "batch": 16,
            "num_steps": 1,
            "distinct_experts_by_layer": [2.0, 2.0],
            "pool_share": 0.5,
        },
        {
            "phase": "decode",
            "batch": 1,
            "num_steps": 1,
            "distinct_experts_by_layer": [2.0, 2.0],
            "pool_share": 0.5,
        },
        {
            "phase": "decode",
            "batch": 2,
            "num_steps": 2,
            "distinct_experts_by_layer": [2.0, 1.0],
            "pool_share": 0.375,
        },
    ]
    assert report["tokens"]["decode"] == [[6, 2, 2, 0], [9, 1, 0, 0]]
    assert report["num_experts"] == 4
    assert report["top_k"] == 2


def test_one_step_in_an_interval_is_counted(tmp_path):
    counter = coverage(tmp_path / "c.json", interval=3)
    for _ in range(7):
        step(counter, [0, 2], [NOTHING, DECODE_OF_TWO, NOTHING])
    (row,) = counter.report()["steps"]
    assert row["num_steps"] == 3
    assert counter.report()["tokens"]["decode"][1][0] == 12


@pytest.mark.parametrize(
    ("tokens", "bucket"), [(0, 0), (1, 1), (8, 8), (9, 16), (16, 16), (17, 32)]
)
def test_large_batches_share_buckets(tokens, bucket):
    assert batch_bucket(tokens, exact_up_to=8) == bucket


def test_the_file_is_written_when_due_and_shown_as_metrics(tmp_path):
    path = tmp_path / "new" / "c.json"
    counter = coverage(path, export_s=0)
    collector = CoverageMetrics(path)
    step(counter, [0, 2], [NOTHING, DECODE_OF_TWO, NOTHING])
    counter.end_step()
    assert json.loads(path.read_text()) == counter.report()
    share, steps, choices = collector.collect()
    assert [(s.labels["phase"], s.value) for s in share.samples] == [("decode", 0.5)]
    assert [s.value for s in steps.samples] == [0, 1]
    assert [s.value for s in choices.samples] == [0, 8]


def test_counts_of_an_earlier_server_are_not_shown_as_this_ones(tmp_path):
    path = tmp_path / "c.json"
    earlier = coverage(path)
    step(earlier, [0, 2], [NOTHING, DECODE_OF_TWO, NOTHING])
    earlier.export()
    coverage(path)
    _, steps, choices = CoverageMetrics(path).collect()
    assert [s.value for s in (*steps.samples, *choices.samples)] == [0, 0, 0, 0]


def test_without_a_file_there_are_no_metrics(tmp_path):
    assert list(CoverageMetrics(tmp_path / "c.json").collect()) == []


def test_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ArtifactError, match="file"):
        coverage(tmp_path / "file" / "c.json")


def test_a_phase_that_never_ran_has_no_share(tmp_path):
    share, *_ = coverage_metrics(coverage(tmp_path / "c.json").report())
    assert share.samples == []
