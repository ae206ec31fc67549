import json
import subprocess
import sys

import pytest
import transformers

from slimwise.backbones.base import Copied, Dropped, ExpertStack, SingleExpert
from slimwise.backbones.registry import backbone_for, inspect_checkpoint
from slimwise.core.moe import MoEShape
from slimwise.errors import BackboneError


def test_shape_and_gate_rule_of_real_checkpoints(tiny_checkpoint, kind, tiny_facts):
    found = inspect_checkpoint(tiny_checkpoint(kind))
    assert found.shape == MoEShape(2, 16, 4, 32, 8, tiny_facts.shared_width)
    assert found.gate_rule == tiny_facts.gate_rule
    assert found.backbone.dtype(found.config) == "float32"
    assert found.backbone.moe_layers(found.config) == (0, 1)


@pytest.mark.parametrize("prefix", ["model.", "model.language_model.", ""])
def test_roles_by_name(prefix):
    role = backbone_for("qwen3_5_moe").tensor_role
    layer = f"{prefix}layers.11.mlp."
    assert role(f"{layer}experts.gate_up_proj") == ExpertStack(11, "experts.gate_up_proj")
    assert role(f"{layer}gate.weight") == ExpertStack(11, "gate.weight")
    single = role(f"{layer}experts.7.up_proj.weight_scale_inv")
    assert isinstance(single, SingleExpert)
    assert (single.layer, single.expert, single.part) == (11, 7, "up_proj.weight_scale_inv")
    assert single.renumbered(2) == f"{layer}experts.2.up_proj.weight_scale_inv"
    for name in ("shared_expert.up_proj.weight", "shared_expert_gate.weight", "gate_proj.weight"):
        assert role(layer + name) == Copied()
    assert role("mtp.layers.0.mlp.experts.0.up_proj.weight") == Dropped()
    assert role("model.visual.blocks.0.mlp.gate.weight") == Copied()


def test_scales_and_biases_of_a_router_follow_its_rows():
    role = backbone_for("qwen3_moe").tensor_role
    for name in ("gate.bias", "gate.e_score_correction_bias"):
        assert role(f"model.layers.3.mlp.{name}") == ExpertStack(3, name)
    role = backbone_for("gemma4").tensor_role
    layer = "model.language_model.layers.3."
    for name in ("router.per_expert_scale", "router.proj.weight", "experts.down_proj"):
        assert role(layer + name) == ExpertStack(3, name)
    for name in (f"{layer}router.scale", f"{layer}mlp.gate_proj.weight"):
        assert role(name) == Copied()
    assert role("model.vision_tower.encoder.layers.3.router.proj.weight") == Copied()


def test_dense_layers_are_no_moe_layers():
    config = {"num_hidden_layers": 6, "mlp_only_layers": [3], "decoder_sparse_step": 2}
    assert backbone_for("qwen3_moe").moe_layers(config) == (1, 5)


@pytest.mark.parametrize("key", ["num_experts", "num_local_experts"])
def test_expert_count_is_written_under_its_own_name(key):
    text = {key: 256, "mtp_num_hidden_layers": 1, "mamba_ssm_dtype": "float32"}
    config = {"model_type": "qwen3_5_moe", "text_config": text, "unknown": [1]}
    pruned = backbone_for("qwen3_5_moe").pruned_config(config, 64)
    expected = {key: 64, "mtp_num_hidden_layers": 0, "mamba_ssm_dtype": "float32"}
    assert pruned == {**config, "text_config": expected}
    assert config["text_config"][key] == 256


def test_modules_of_a_loaded_model(tiny_model, kind):
    model = tiny_model(kind)
    modules = backbone_for(model.config.model_type).moe_modules(model.base_model)
    assert [layer.router.weight.shape for layer in modules] == [(16, 32)] * 2


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"config\.json"),
        (lambda folder: (folder / "config.json").write_text("{"), r"config\.json"),
        (lambda folder: (folder / "config.json").write_text("[]"), r"config\.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"no \.safetensors"),
        (lambda folder: _edit(folder, model_type="llama"), "'llama'.*qwen3_5_moe, .*qwen3_moe"),
        (lambda folder: _edit(folder, num_experts_per_tok=None), "num_experts_per_tok"),
        (lambda folder: _edit(folder, moe_intermediate_size="8"), "moe_intermediate_size"),
        (lambda folder: _edit(folder, num_hidden_layers=0), "num_hidden_layers"),
    ],
)
def test_bad_folders_are_named(tiny_checkpoint, spoil, named):
    folder = tiny_checkpoint("plain")
    spoil(folder)
    with pytest.raises(BackboneError, match=named) as failure:
        inspect_checkpoint(folder)
    assert str(folder) in str(failure.value)


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(BackboneError, match="absent"):
        inspect_checkpoint(tmp_path / "absent")


def _edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_the_registry_does_not_load_torch():
    code = "import sys, slimwise.backbones.registry; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_class_of_the_largest_target_agrees():
    """Qwen3.6-35B-A3B has 40 layers x 256 experts, the defaults of its configuration class."""
    config = transformers.Qwen3_5MoeConfig().to_dict()
    shape = backbone_for("qwen3_5_moe").shape(config)
    assert shape == MoEShape(40, 256, 8, 2048, 512, 512)


@pytest.mark.parametrize(
    ("model_type", "config"),
    [
        ("gemma4_text", {"enable_moe_block": False}),
        ("qwen3_moe", {"mlp_only_layers": [0, 1]}),
        ("qwen2_moe", {"decoder_sparse_step": 3}),
    ],
)
def test_a_dense_model_of_the_family_is_refused(model_type, config):
    with pytest.raises(BackboneError, match="no experts to prune"):
        backbone_for(model_type).moe_layers({"num_hidden_layers": 2, **config})


def test_a_step_over_dense_layers_is_a_whole_number():
    with pytest.raises(BackboneError, match="decoder_sparse_step = 0"):
        backbone_for("qwen3_moe").moe_layers({"num_hidden_layers": 2, "decoder_sparse_step": 0})
