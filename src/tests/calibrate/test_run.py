import json
import sys
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.routing_stats import read_routing_stats
from slimwise.calibrate import sequences
from slimwise.calibrate.config import CalibrationConfig
from slimwise.calibrate.observer import RoutingObserver
from slimwise.calibrate.run import run
from slimwise.config import slice_json
from slimwise.errors import CheckpointError, ConfigError
from slimwise.inspect.config import BackboneConfig
from slimwise.inspect.run import run as inspect_backbone

CONFIG = CalibrationConfig(
    sequences_per_component=3, max_sequence_tokens=48, batch_tokens=64, save_every_batches=2
)


@pytest.fixture
def backbone(tmp_path) -> Path:
    out = tmp_path / "backbone.json"
    inspect_backbone(BackboneConfig(model="embedded", name="miniature"), out=out)
    return out


@pytest.fixture
def observations(monkeypatch) -> list[int]:
    """Tokens of each observed batch; the process dies at the sixth."""
    seen: list[int] = []
    observe = RoutingObserver.observe

    def count(observer, batch):
        if len(seen) == 5:
            seen.clear()
            raise KeyboardInterrupt
        seen.append(batch.num_tokens)
        return observe(observer, batch)

    monkeypatch.setattr(RoutingObserver, "observe", count)
    return seen


def test_a_killed_run_resumes_to_the_same_bits(tmp_path, backbone, observations, monkeypatch):
    work = tmp_path / "work"
    paths = {"backbone": backbone, "work": work}
    with pytest.raises(KeyboardInterrupt):
        run(CONFIG, **paths, out=tmp_path / "resumed.safetensors")
    run(CONFIG, **paths, out=tmp_path / "resumed.safetensors")
    # Nine batches, of which four lay behind the last resume point.
    assert len(observations) == 5
    monkeypatch.undo()
    run(CONFIG, **paths, out=tmp_path / "unbroken.safetensors")
    resumed = read_routing_stats(tmp_path / "resumed.safetensors")
    unbroken = read_routing_stats(tmp_path / "unbroken.safetensors")
    assert list(resumed) == list(unbroken) == ["maths", "code", "tools"]
    for component, stats in unbroken.items():
        assert torch.equal(resumed[component].gate_norm_LE, stats.gate_norm_LE)
        assert torch.equal(resumed[component].tokens_LE, stats.tokens_LE)
        assert stats.tokens_LE.sum(dim=1).unique().numel() == 1


def test_resume_points_of_another_configuration_are_not_used(tmp_path, backbone, observations):
    paths = {"backbone": backbone, "work": tmp_path / "work", "out": tmp_path / "out.safetensors"}
    for change in ({}, {"max_sequence_tokens": 47}, {"seed": 1}, {"dtype": "float32"}):
        with pytest.raises(KeyboardInterrupt):
            run(CONFIG.model_copy(update=change), **paths)
    assert len(list((tmp_path / "work").iterdir())) == 4


def test_tokens_that_changed_are_not_resumed(tmp_path, backbone, observations, monkeypatch):
    paths = {"backbone": backbone, "work": tmp_path / "work", "out": tmp_path / "out.safetensors"}
    with pytest.raises(KeyboardInterrupt):
        run(CONFIG, **paths)
    render = sequences.render

    def with_another_token(tokenizer, item):
        prompt_ids, response_ids = render(tokenizer, item)
        return [7, *prompt_ids[1:]], response_ids

    monkeypatch.setattr(sequences, "render", with_another_token)
    with pytest.raises(KeyboardInterrupt):
        run(CONFIG, **paths)
    assert len(list((tmp_path / "work").iterdir())) == 2


def test_memory_that_runs_out_changes_no_sum(tmp_path, backbone, monkeypatch):
    """Batches above 100 positions fail, as on a GPU that others fill."""
    observe = RoutingObserver.observe
    sizes = []

    def fail_when_large(observer, batch):
        if batch.num_positions > 100:
            raise torch.OutOfMemoryError("made")
        sizes.append(batch.num_positions)
        return observe(observer, batch)

    config = CONFIG.model_copy(update={"dtype": "float32", "batch_tokens": 400})
    run(config, backbone=backbone, work=tmp_path / "work", out=tmp_path / "whole.safetensors")
    monkeypatch.setattr(RoutingObserver, "observe", fail_when_large)
    run(config, backbone=backbone, work=tmp_path / "work", out=tmp_path / "halved.safetensors")
    assert max(sizes) <= 100
    whole, halved = (
        read_routing_stats(tmp_path / f"{name}.safetensors") for name in ("whole", "halved")
    )
    for component, stats in whole.items():
        assert torch.equal(halved[component].tokens_LE, stats.tokens_LE)
        torch.testing.assert_close(
            halved[component].gate_norm_LE, stats.gate_norm_LE, rtol=1e-5, atol=1e-6
        )


@pytest.mark.slow
def test_two_processes_add_up_to_one_on_one_host_or_two(tmp_path, backbone, starts):
    """Batches of one sequence are computed alike; only the order of float64 sums differs."""
    config = CONFIG.model_copy(update={"dtype": "float32", "batch_tokens": 16, "cpu_threads": 1})
    found = {}
    for name, start in starts.items():
        out, work = tmp_path / f"{name}.safetensors", tmp_path / f"{name}_work"
        paths = ["--backbone", str(backbone), "--out", str(out), "--work", str(work)]
        stage = ["-m", "slimwise.cli", "collect-stats", "--config", slice_json(config), *paths]
        start([sys.executable, *stage])
        found[name] = read_routing_stats(out)
        folders = {path.name for path in work.glob("*/*")}
        both = {"process_1_of_2", "process_2_of_2"}
        assert folders == ({"process_1_of_1"} if name == "alone" else both)
    for component, stats in found["alone"].items():
        for both in (found["processes"][component], found["hosts"][component]):
            assert torch.equal(both.tokens_LE, stats.tokens_LE)
            for field in ("gate_LE", "norm_LE", "gate_norm_LE", "softmax_gate_norm_LE"):
                torch.testing.assert_close(
                    getattr(both, field), getattr(stats, field), rtol=1e-14, atol=1e-14
                )


def test_unknown_component_lists_the_known_ones(tmp_path, backbone):
    config = CONFIG.model_copy(update={"components": ("chemistry",)})
    with pytest.raises(ConfigError, match=r"'chemistry'.*maths, code, tools"):
        run(config, backbone=backbone, out=tmp_path / "out", work=tmp_path / "work")


@pytest.mark.parametrize(
    ("components", "fault"), [((), "at least 1 item"), (("code", "maths", "code"), "code twice")]
)
def test_a_mixture_of_nothing_or_of_one_thing_twice_is_refused(components, fault):
    with pytest.raises(ValidationError, match=fault):
        CalibrationConfig(components=components)


def test_a_model_that_changed_since_its_inspection_is_refused(tmp_path, backbone):
    record = json.loads(backbone.read_text())
    backbone.write_text(json.dumps({**record, "digest": "0" * 64}))
    assert read_backbone_record(backbone).digest == "0" * 64
    with pytest.raises(CheckpointError, match="has changed"):
        run(CONFIG, backbone=backbone, out=tmp_path / "out", work=tmp_path / "work")
