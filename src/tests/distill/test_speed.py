"""The yardstick computes the same gradients, and every outcome becomes a row."""

import json

import pytest
import torch

from slimwise.backbones.published import PublishedShape
from slimwise.distill.loop import accumulate
from slimwise.distill.speed import run as speed
from slimwise.distill.speed.config import DistillSpeedConfig
from slimwise.distill.speed.two_copies import two_copies_step
from slimwise.processes import Processes
from slimwise.provenance import Provenance


def _gradients(student):
    return {name: parameter.grad for name, parameter in student.trained().items()}


def test_two_copies_have_our_gradients_for_split_zero(
    build_student, tiny_model, kind, config, sequences
):
    """All of the vocabulary as teacher's tokens: the sum over the top and the rest is the whole."""
    settings, drawn = config(num_top=64), sequences([0, 0, 0])
    ours, copy = build_student(moved=True), build_student(moved=True)
    accumulate(ours, drawn, settings, processes=Processes(0, 1))
    two_copies_step(tiny_model(kind), copy, drawn, settings)
    expected = _gradients(copy)
    for name, gradient in _gradients(ours).items():
        torch.testing.assert_close(gradient, expected[name], rtol=1e-3, atol=1e-5, msg=name)


@pytest.fixture
def measured(tiny_model, config, tmp_path, monkeypatch):
    """A function from changes of the configuration to the rows it gives, on a tiny model."""
    tiny = tiny_model("hybrid").config
    tiny.vocab_size = 64
    monkeypatch.setattr(speed, "language_model", lambda *_: tiny)
    monkeypatch.setattr(speed, "current_provenance", lambda: Provenance("", "", "", {}, ""))

    def rows(**changes):
        settings = DistillSpeedConfig(
            shape=PublishedShape.QWEN3_6_35B_A3B,
            step_tokens=120,
            training_tokens=3600,
            distillation=config(checkpoint_layers=True, micro_batch_tokens=256),
            **{"sequence_tokens": (40, 150), **changes},
        )
        out = tmp_path / "rows.jsonl"
        speed.run(settings, out=out)
        return [json.loads(line) for line in out.read_text().splitlines()]

    return rows


@pytest.mark.parametrize(
    ("implementation", "routes"), [("slimwise", ["cached", "one_pass"]), ("two_copies", ["whole"])]
)
def test_one_row_for_each_route_and_length(measured, implementation, routes):
    rows = measured(implementation=implementation)
    found = [(row["route"], row["sequence_tokens"], row["num_sequences"]) for row in rows]
    assert found == [(route, *sizes) for route in routes for sizes in ((40, 3), (150, 1))]
    for row in rows:
        assert row["training_hours"] == pytest.approx(1 / row["tokens_per_s"])


def test_too_little_memory_is_a_row_and_the_next_length_has_its_turn(measured, monkeypatch):
    def step(sequences):
        if len(sequences[0].ids) > 100:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. Sorry.")

    monkeypatch.setattr(speed, "_steps", lambda *_: {"cached": step})
    rows = measured(sequence_tokens=(150, 40))
    assert rows[0]["failure"] == "CUDA out of memory. Tried to allocate 2.00 GiB. Sorry."
    assert rows[0]["tokens_per_s"] is None
    assert rows[1]["tokens_per_s"] > 0


def test_a_profile_names_the_operators(measured, tmp_path):
    measured(profile=True, sequence_tokens=(40,), routes=("cached",))
    assert "aten::mm" in (tmp_path / "rows_profile_cached.txt").read_text()
