"""The stage from a checkpoint on disk to the exported decoder."""

import json
from typing import Any

import pytest
import torch
import transformers

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.core.vocabulary import Criterion, Distillation
from slimwise.distill import run as stage
from slimwise.distill.loop import distil
from slimwise.distill.student import Student
from slimwise.errors import BackboneError, ConfigError
from slimwise.export.config import ExportConfig
from slimwise.export.run import run as export
from slimwise.provenance import Provenance

from .conftest import KEEP_SET


class _Numbers:
    def draw(self, rng):
        return [rng.randrange(1, 64) for _ in range(rng.randrange(8, 30))]


@pytest.fixture
def distilled(tiny_checkpoint, kind, inspected, config, tmp_path, monkeypatch):
    """(student after training, paths of record, keep set and distilled folder)."""
    backbone = inspected(tiny_checkpoint(kind))
    record = read_backbone_record(backbone)
    keep_set = tmp_path / "keep.json"
    chosen = KeepSetRecord(KEEP_SET, Criterion.REAP, record.digest, record.model_type)
    write_keep_set(keep_set, chosen, Provenance("", "", "", {}, ""))
    students: list[Student] = []

    def watched(student, *arguments, **keywords):
        students.append(student)
        distil(student, *arguments, **keywords)

    monkeypatch.setattr(stage, "distil", watched)
    monkeypatch.setattr(stage, "sequence_source", lambda *_: _Numbers())
    monkeypatch.setattr(stage, "load_tokenizer", lambda _: None)
    settings = config(rules=("uniform",), steps=3, warmup_steps=1, learning_rate=1e-2)
    stage.run(
        settings,
        backbone=backbone,
        keep_set=keep_set,
        rule=Distillation.UNIFORM,
        out=tmp_path / "distilled",
        work=tmp_path / "work",
    )
    return students[0], backbone, keep_set, tmp_path / "distilled"


def test_the_exported_decoder_is_the_student(distilled, tmp_path):
    """A standard checkpoint, loaded by its stock class, with no module of ours."""
    student, backbone, keep_set, folder = distilled
    out = tmp_path / "exported"
    export(
        ExportConfig(), backbone=backbone, keep_set=keep_set, trained=folder / "manifest.json",
        out=out,
    )  # fmt: skip
    loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(
        out, dtype=torch.float32, output_loading_info=True
    )
    model, report = loaded
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ids = torch.randint(1, 64, (2, 40), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        student.phases.student()
        student.model.eval()
        expected = student.model(ids).logits
        torch.testing.assert_close(model(ids).logits, expected, rtol=1e-4, atol=2e-5)
    trained = json.loads((folder / "manifest.json").read_text())
    assert trained["rule"] == "uniform"
    assert (folder / "distill_log.csv").read_text().count("\n") == 4


@pytest.fixture
def untrained(tiny_checkpoint, inspected, kind, config, tmp_path):
    """A function that runs the stage for a rule, after a change to the model's config.json."""

    def run(rule: Distillation, **changes: Any) -> None:
        folder = tiny_checkpoint(kind)
        described = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**described, **changes}))
        backbone = inspected(folder)
        record = read_backbone_record(backbone)
        chosen = KeepSetRecord(KEEP_SET, Criterion.REAP, record.digest, record.model_type)
        write_keep_set(tmp_path / "keep.json", chosen, Provenance("", "", "", {}, ""))
        stage.run(
            config(rules=("uniform",)),
            backbone=backbone,
            keep_set=tmp_path / "keep.json",
            rule=rule,
            out=tmp_path / "out",
            work=tmp_path / "work",
        )

    return run


def test_a_rule_outside_the_study_is_refused(untrained):
    with pytest.raises(ConfigError, match=r"'zero' is not in the study.*has uniform"):
        untrained(Distillation.ZERO)


def test_a_quantised_model_is_refused(untrained):
    """Its scales would be applied to the trained weights, which have none."""
    quantised = {"quant_method": "fp8", "weight_block_size": [16, 16]}
    with pytest.raises(BackboneError, match=r"quantised \(fp8\).* clear distillation\.rules"):
        untrained(Distillation.UNIFORM, quantization_config=quantised)
