import json
from pathlib import Path

import pytest
import torch

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.routing_stats import read_routing_stats
from slimwise.calibrate.config import CalibrationConfig
from slimwise.calibrate.observer import RoutingObserver
from slimwise.calibrate.run import run
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


def test_unknown_component_lists_the_known_ones(tmp_path, backbone):
    config = CONFIG.model_copy(update={"components": ("chemistry",)})
    with pytest.raises(ConfigError, match=r"'chemistry'.*maths, code, tools"):
        run(config, backbone=backbone, out=tmp_path / "out", work=tmp_path / "work")


def test_a_model_that_changed_since_its_inspection_is_refused(tmp_path, backbone):
    record = json.loads(backbone.read_text())
    backbone.write_text(json.dumps({**record, "digest": "0" * 64}))
    assert read_backbone_record(backbone).digest == "0" * 64
    with pytest.raises(CheckpointError, match="has changed"):
        run(CONFIG, backbone=backbone, out=tmp_path / "out", work=tmp_path / "work")
