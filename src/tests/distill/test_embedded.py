"""Trained tensors that ship stand for a training of exactly the same decoder, and for no other."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slimwise.artifacts.backbone_record import BackboneRecord, write_backbone_record
from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.artifacts.trained_record import read_trained_record, write_trained_record
from slimwise.core.keep_set import KeepSet
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.core.vocabulary import Criterion, Distillation
from slimwise.distill import embedded as stage
from slimwise.distill import run as training
from slimwise.distill.config import DistillationConfig
from slimwise.distill.record import trained_record
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

CONFIG = DistillationConfig(rules=(Distillation.UNIFORM,), steps=5)
ORIGIN = Provenance("abc1234", "2026-11-30T07:00:00+00:00", "H200 x1", {}, "distil")
SHAPE = MoEShape(1, 8, 2, hidden_size=16, expert_width=8, shared_expert_width=8)
BACKBONE = BackboneRecord(
    "tiny", Path("m"), "t", "A", SHAPE, GateRule(GateActivation.SOFTMAX, True), "bfloat16", "b" * 64
)


class Study:
    """The inputs of the stage, the folder that ships, and how often something was trained."""

    def __init__(self, root: Path) -> None:
        self.backbone, self.keep_set = root / "backbone.json", root / "keep.json"
        self.embedded, self.out = root / "embedded", root / "out"
        self.work = root / "work"
        self.trainings: list[dict[str, Any]] = []
        self.embedded.mkdir()
        write_backbone_record(self.backbone, BACKBONE, ORIGIN)
        self.choose(0, 1, 2)
        (self.embedded / "trained.safetensors").write_bytes(b"weights")
        (self.embedded / "distill_log.csv").write_text("step,loss\n")
        chosen = KeepSetRecord(KeepSet(((0, 1, 2),), 8, 2), Criterion.REAP, BACKBONE.digest, "t")
        record = trained_record(CONFIG, BACKBONE, chosen, Distillation.UNIFORM)
        write_trained_record(self.embedded, record, ORIGIN)

    def choose(self, *kept: int) -> None:
        record = KeepSetRecord(KeepSet((kept,), 8, 2), Criterion.REAP, BACKBONE.digest, "t")
        write_keep_set(self.keep_set, record, Provenance("", "later", "", {}, ""))

    def distil(self, **changes: Any) -> None:
        stage.run(
            CONFIG.model_copy(update=changes),
            backbone=self.backbone,
            keep_set=self.keep_set,
            rule=Distillation.UNIFORM,
            embedded=self.embedded,
            out=self.out,
            work=self.work,
        )


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    made = Study(tmp_path)
    monkeypatch.setattr(training, "run", lambda *_, **words: made.trainings.append(words))
    return made


def test_what_ships_is_taken_with_its_provenance(study: Study):
    study.distil()
    assert study.trainings == []
    assert read_trained_record(study.out) == read_trained_record(study.embedded)
    manifest = json.loads((study.out / "manifest.json").read_text())
    assert manifest["provenance"]["hardware"] == "H200 x1"
    assert (study.out / "distill_log.csv").exists()


def test_settings_that_change_only_the_speed_do_not_matter(study: Study):
    study.distil(micro_batch_tokens=64, device="cpu", route="cached", rules=("uniform", "zero"))
    assert study.trainings == []


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda study: study.choose(0, 1, 3), "keep_set_digest"),
        (lambda study: study.distil(seed=1), "seed"),
        (lambda study: study.distil(steps=6), "recipe.steps"),
    ],
    ids=["keep set", "seed", "steps"],
)
def test_anything_else_trains_anew_and_says_why(
    study: Study,
    change: Callable[[Study], None],
    word: str,
    caplog: pytest.LogCaptureFixture,
):
    with caplog.at_level(logging.WARNING):
        change(study)
        if not study.trainings:
            study.distil()
    assert len(study.trainings) == 1
    assert word in caplog.text
    assert not study.out.exists()


def test_a_study_may_train_in_any_case(study: Study):
    study.distil(embedded=False)
    assert len(study.trainings) == 1


def test_a_decoder_without_a_folder_is_trained(study: Study):
    study.embedded = study.embedded / "none"
    study.distil()
    assert len(study.trainings) == 1


@pytest.mark.parametrize(
    ("file", "content"),
    [("trained.safetensors", "weig"), ("manifest.json", '{"schema": '), ("extra.bin", "x")],
)
def test_a_damaged_folder_is_refused(study: Study, file: str, content: str):
    (study.embedded / file).write_text(content)
    with pytest.raises(ArtifactError, match=r"ship in .*embedded cannot be used.*Restore"):
        study.distil()
    assert study.trainings == []


def test_taking_loads_no_torch():
    program = "import sys, slimwise.distill.embedded\nassert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)
