"""The measurement of exports, on one layer of the published shape cut to a few experts."""

import json

import pytest

from slimwise.artifacts.weight_files import read_weights
from slimwise.backbones.published import PublishedShape, language_model
from slimwise.export.speed import run as speed
from slimwise.export.speed import synthetic
from slimwise.export.speed.config import ExportSpeedConfig
from slimwise.export.verify import verify_folder

SHAPE = PublishedShape.QWEN3_6_35B_A3B


def _small(num_layers):
    """The published shape with a few small experts."""
    config = language_model(SHAPE, num_layers)
    config.hidden_size, config.vocab_size, config.num_experts = 64, 128, 16
    config.moe_intermediate_size = config.shared_expert_intermediate_size = 32
    return config


def test_a_synthetic_checkpoint_is_whole(tmp_path):
    size = synthetic.write_synthetic_checkpoint(tmp_path / "model", _small(2), shard_gib=1e-4)
    entries = read_weights(tmp_path / "model")
    assert sum(entry.num_bytes for entry in entries.values()) == size
    assert len({entry.path for entry in entries.values()}) > 2
    assert verify_folder(tmp_path / "model").shape.num_experts == 16


def test_the_row_tells_both_speeds_and_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(speed, "language_model", lambda _shape, num_layers: _small(num_layers))
    config = ExportSpeedConfig(shape=SHAPE, num_layers=1, num_kept=12, repeats=1)
    speed.run(config, out=tmp_path / "rows.jsonl", work=tmp_path / "work")
    (row,) = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert 0 < row["pruned_gib"] < row["checkpoint_gib"]
    assert row["gib_per_s"] == pytest.approx(row["pruned_gib"] / row["export_s"][0])
    assert row["copy_gib_per_s"] > 0
    assert row["peak_rss_gib"] > 0
    assert not (tmp_path / "work" / "source").exists()
