"""The measurement of exports, on one layer of the published shape cut to a few experts."""

import json

import pytest

from slimwise.artifacts.weight_files import read_weights
from slimwise.export.speed import run as speed
from slimwise.export.speed import synthetic
from slimwise.export.speed.config import ExportSpeedConfig


@pytest.fixture
def small_shape(monkeypatch):
    published = synthetic.published_config

    def shrunk(shape):
        config = published(shape)
        text = config.get_text_config()
        text.hidden_size, text.vocab_size, text.num_experts = 64, 128, 16
        text.moe_intermediate_size = text.shared_expert_intermediate_size = 32
        return config

    monkeypatch.setattr(synthetic, "published_config", shrunk)


@pytest.mark.usefixtures("small_shape")
def test_a_synthetic_checkpoint_is_whole(tmp_path):
    size = synthetic.write_synthetic_checkpoint(tmp_path / "model", 2, shard_gib=1e-4)
    entries = read_weights(tmp_path / "model")
    assert sum(entry.num_bytes for entry in entries.values()) == size
    assert len({entry.path for entry in entries.values()}) > 2


@pytest.mark.usefixtures("small_shape")
def test_the_row_tells_both_speeds_and_the_memory(tmp_path):
    config = ExportSpeedConfig(num_layers=1, num_kept=8, repeats=1)
    speed.run(config, out=tmp_path / "rows.jsonl", work=tmp_path / "work")
    (row,) = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert 0 < row["pruned_gib"] < row["checkpoint_gib"]
    assert row["gib_per_s"] == pytest.approx(row["pruned_gib"] / row["export_s"][0])
    assert row["copy_gib_per_s"] > 0
    assert row["peak_rss_gib"] > 0
    assert not (tmp_path / "work" / "source").exists()
