"""The yardsticks of scoring compute what the observer computes."""

import json
import os
from pathlib import Path

import pytest
import torch

from slimwise.backbones.published import PublishedShape
from slimwise.backbones.registry import backbone_for
from slimwise.calibrate.batches import first_batch
from slimwise.calibrate.observer import observed
from slimwise.calibrate.speed import run as speed
from slimwise.calibrate.speed.config import ScoringSpeedConfig
from slimwise.calibrate.speed.expert_loop import looped
from slimwise.calibrate.speed.reap_observer import observed_by_reap
from slimwise.core.moe import GateActivation, GateRule
from slimwise.errors import ConfigError

SOFTMAX = GateRule(GateActivation.SOFTMAX, renormalised=True)
KINDS = ["hybrid", "parallel"]


@pytest.fixture
def ids_BS():
    return torch.randint(1, 64, (2, 19), generator=torch.Generator().manual_seed(5))


def _observe(model, family, ids_BS):
    batch = first_batch(ids_BS.tolist(), 10**6)
    with observed(model, family, SOFTMAX) as observer:
        return observer.observe(batch)


@pytest.mark.parametrize("kind", KINDS)
def test_the_loop_agrees_with_the_observer(tiny_decoder, kind, ids_BS):
    model = tiny_decoder(kind)
    family = backbone_for(model.config.model_type)
    expected = _observe(model, family, ids_BS)
    with torch.inference_mode():
        output = model(ids_BS, use_cache=False).last_hidden_state
        with looped(model, family) as loop:
            again = model(ids_BS, use_cache=False).last_hidden_state
    torch.testing.assert_close(again, output, rtol=1e-5, atol=1e-5)
    assert torch.equal(loop.tokens, expected.tokens_LE)
    torch.testing.assert_close(loop.norm, expected.norm_LE, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(loop.gate_norm, expected.gate_norm_LE, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif("REAP_SOURCE" not in os.environ, reason="needs a checkout of REAP")
def test_the_reap_observer_agrees_with_ours(tiny_decoder, ids_BS):
    model = tiny_decoder("hybrid")
    family = backbone_for(model.config.model_type)
    expected = _observe(model, family, ids_BS)
    with observed_by_reap(model, family, 4, Path(os.environ["REAP_SOURCE"])) as state:
        with torch.inference_mode():
            model(ids_BS, use_cache=False)
        by_layer = state()
    for layer, sums in by_layer.items():
        assert torch.equal(sums["expert_frequency"], expected.tokens_LE[layer].long())
        torch.testing.assert_close(sums["ean_sum"], expected.norm_LE[layer], rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(
            sums["weighted_ean_sum"], expected.gate_norm_LE[layer], rtol=1e-5, atol=1e-6
        )


def test_a_folder_without_the_observer_is_refused(tiny_decoder, tmp_path):
    model = tiny_decoder("hybrid")
    family = backbone_for(model.config.model_type)
    with (
        pytest.raises(ConfigError, match=r"no reap/observer\.py"),
        observed_by_reap(model, family, 4, tmp_path),
    ):
        pass


def test_one_row_for_each_implementation(tiny_decoder, tmp_path, monkeypatch):
    model = tiny_decoder("hybrid")
    monkeypatch.setattr(speed, "language_model", lambda _shape, _num_layers: model.config)
    config = ScoringSpeedConfig(
        shape=PublishedShape.QWEN3_6_35B_A3B,
        sequence_tokens=16,
        batch_sequences=2,
        num_batches=1,
        mixture_tokens=6000,
    )
    monkeypatch.setattr(speed, "_TOKEN_IDS", 60)
    speed.run(config, out=tmp_path / "rows.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [row["implementation"] for row in rows] == ["slimwise", "expert_loop", "unobserved"]
    for row in rows:
        assert row["mixture_minutes"] == pytest.approx(100 / row["tokens_per_s"])
