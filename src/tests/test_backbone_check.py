import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from slimwise.artifacts.backbone_record import BackboneRecord, write_backbone_record
from slimwise.backbone_check import check_if_known, run
from slimwise.config import load_study
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.errors import ArtifactError, BackboneError, ConfigError
from slimwise.provenance import current_provenance


@pytest.fixture
def backbone(tmp_path):
    """The record of a model with 64 experts, top-4, named miniature."""
    shape = MoEShape(8, 64, 4, hidden_size=192, expert_width=32, shared_expert_width=64)
    rule = GateRule(GateActivation.SOFTMAX, renormalised=True)
    model = tmp_path / "model"
    say(model, "qwen3_5_moe_text")
    record = BackboneRecord("miniature", model, "t", "A", shape, rule, "bfloat16", "0")
    path = tmp_path / "backbone.json"
    write_backbone_record(path, record, current_provenance())
    return path


def say(model: Path, model_type: str, **more: Any) -> None:
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps({"model_type": model_type, **more}))


def study(*num_kept: int, name: str = "miniature", **distillation: Any):
    return load_study(
        {
            "study": "checked",
            "backbone": {"model": "embedded", "name": name},
            "selection": {"num_kept": list(num_kept)},
            "distillation": distillation,
            "serving": {"max_model_len_tokens": 640},
            "evaluation": {"benchmarks": ["mini_maths"], "budget_tokens": 288},
        }
    )


def test_counts_from_top_k_to_all_experts_pass(backbone):
    run(study(4, 64, rules=["uniform"]), backbone=backbone)


@pytest.mark.parametrize(("num_kept", "limit"), [(3, "top_k=4"), (65, "num_experts=64")])
def test_a_count_outside_is_refused_with_value_limit_and_remedy(backbone, num_kept, limit):
    with pytest.raises(ConfigError) as refusal:
        run(study(32, num_kept), backbone=backbone)
    for part in (f"num_kept={num_kept}", limit, "selection.num_kept to 4..64"):
        assert part in str(refusal.value)


@pytest.mark.parametrize("asked", [{"rules": ["zero"]}, {"decoders": ["reap-m32-kd_zero"]}])
def test_a_model_that_cannot_be_distilled_is_refused_if_it_should_be(backbone, asked):
    model = backbone.parent / "model"
    for model_type in ("qwen2_moe", "qwen3_moe", "mixtral", "olmoe"):
        say(model, model_type)
        run(study(32), backbone=backbone)
        with pytest.raises(BackboneError, match=rf"{model_type}.* clear distillation\.rules"):
            run(study(32, **asked), backbone=backbone)
    say(model, "gemma4", quantization_config={"quant_method": "fp8"})
    with pytest.raises(BackboneError, match=r"quantised \(fp8\).* clear distillation\.rules"):
        run(study(32, **asked), backbone=backbone)


def test_only_the_record_of_the_same_backbone_counts_before_the_first_stage(backbone, tmp_path):
    check_if_known(study(3, name="another"), backbone)
    check_if_known(study(3), tmp_path / "none.json")
    with pytest.raises(ConfigError):
        check_if_known(study(3), backbone)


def test_a_model_that_is_gone_is_not_asked_whether_it_can_be_distilled(backbone):
    say(backbone.parent / "model", "mixtral")
    with pytest.raises(BackboneError):
        check_if_known(study(32, rules=["zero"]), backbone)
    shutil.rmtree(backbone.parent / "model")
    check_if_known(study(32, rules=["zero"]), backbone)


def test_the_stage_itself_needs_the_record(tmp_path):
    with pytest.raises(ArtifactError):
        run(study(8), backbone=tmp_path / "none.json")
