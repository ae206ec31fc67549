import json

import pytest
from safetensors.torch import load_file, save_file

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.errors import BackboneError, CheckpointError, ConfigError
from slimwise.inspect.config import BackboneConfig
from slimwise.inspect.run import run


def _edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_embedded_miniature(tmp_path):
    run(BackboneConfig(model="embedded", name="miniature"), out=tmp_path / "b.json")
    record = read_backbone_record(tmp_path / "b.json")
    assert record.model.is_absolute()
    assert record.shape.num_experts == 64
    assert record.architecture == "Qwen3_5MoeForCausalLM"


def test_trained_stands_for_the_given_folder(tmp_path, tiny_checkpoint):
    folder = tiny_checkpoint("hybrid")
    config = BackboneConfig(model="trained", name="tiny")
    run(config, trained=folder, out=tmp_path / "b.json")
    assert read_backbone_record(tmp_path / "b.json").model == folder
    with pytest.raises(ConfigError, match="trained"):
        run(config, out=tmp_path / "b.json")


def test_equal_shapes_with_other_weights_have_other_digests(tiny_checkpoint, inspected):
    folder = tiny_checkpoint("plain")
    before = read_backbone_record(inspected(folder))
    weights = folder / "model.safetensors"
    tensors = load_file(weights)
    tensors["model.layers.1.mlp.experts.3.up_proj.weight"] += 1
    save_file(tensors, weights, {"format": "pt"})
    after = read_backbone_record(inspected(folder))
    assert before.shape == after.shape
    assert before.digest != after.digest


def test_another_gate_rule_is_another_model(tiny_checkpoint, inspected):
    folder = tiny_checkpoint("plain")
    before = read_backbone_record(inspected(folder))
    _edit_config(folder, norm_topk_prob=True)
    after = read_backbone_record(inspected(folder))
    assert (before.gate_rule.renormalised, after.gate_rule.renormalised) == (False, True)
    assert before.digest != after.digest


def test_folder_names_do_not_matter(tmp_path, tiny_checkpoint, inspected):
    folder = tiny_checkpoint("plain").rename(tmp_path / "mixtral-gemma")
    assert read_backbone_record(inspected(folder)).model_type == "qwen3_moe"


def test_float16_is_refused_where_it_overflows(tiny_checkpoint, inspected):
    hybrid, plain = tiny_checkpoint("hybrid"), tiny_checkpoint("plain")
    for folder in (hybrid, plain):
        _edit_config(folder, dtype="float16")
    assert read_backbone_record(inspected(plain)).dtype == "float16"
    with pytest.raises(BackboneError, match=r"float16.*bfloat16"):
        inspected(hybrid)


def test_truncated_weights_are_named(tiny_checkpoint, inspected):
    folder = tiny_checkpoint("plain")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"model\.safetensors are truncated"):
        inspected(folder)


def test_missing_architecture_or_dtype_is_named(tiny_checkpoint, inspected):
    folder = tiny_checkpoint("plain")
    _edit_config(folder, architectures=None)
    with pytest.raises(BackboneError, match="architectures"):
        inspected(folder)
    _edit_config(folder, architectures=["A"], dtype=None)
    with pytest.raises(BackboneError, match="dtype"):
        inspected(folder)


@pytest.mark.parametrize("model", ["./absent", "/absent/model", "no spaces allowed"])
def test_absent_models_are_named(tmp_path, model, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(BackboneError, match=r"absent|no spaces allowed"):
        run(BackboneConfig(model=model, name="x"), out=tmp_path / "b.json")
