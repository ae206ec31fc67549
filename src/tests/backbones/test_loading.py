"""Models that one device cannot hold: hooks move weights and activations between places.

And tokenizers that a study cannot use.
"""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from slimwise.backbones import loading
from slimwise.backbones.loading import language_decoder, load_causal_model, load_tokenizer
from slimwise.backbones.registry import backbone_for
from slimwise.calibrate.batches import first_batch
from slimwise.calibrate.observer import observed
from slimwise.errors import BackboneError
from slimwise.paths import EMBEDDED_CHECKPOINT

CPU = (torch.device("cpu"),)
GPUS = (torch.device("cuda", 2), torch.device("cuda", 3))


def _stats(model):
    decoder = language_decoder(model)
    family = backbone_for(decoder.config.model_type)
    with observed(decoder, family, family.gate_rule(decoder.config.to_dict())) as observer:
        return observer.observe(first_batch([list(range(1, 20)), [5, 6, 7]], 100))


@pytest.mark.parametrize("kind", ["hybrid", "parallel"])
def test_a_model_in_two_places_has_the_same_statistics(tiny_checkpoint, kind, tmp_path):
    """The second layer stays on disk: what spreading over GPUs does, as far as a CPU can show."""
    folder = tiny_checkpoint(kind)
    whole = load_causal_model(folder, "float32", CPU)
    parts = [f"model.{name}" for name, _ in whole.model.named_children() if name != "layers"]
    places = dict.fromkeys(["lm_head", *parts, "model.layers.0"], "cpu")
    spread = AutoModelForCausalLM.from_pretrained(
        folder,
        device_map={**places, "model.layers.1": "disk"},
        offload_folder=tmp_path / "offload",
        dtype=torch.float32,
    )
    assert any(weight.is_meta for weight in spread.parameters())
    assert torch.equal(_stats(spread).gate_norm_LE, _stats(whole).gate_norm_LE)


def _write_fp8(source, folder):
    """The checkpoint with experts in FP8, a scale for each 32 x 32 block."""
    shutil.copytree(source, folder)
    weights = load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    config["quantization_config"] = {
        "quant_method": "fp8",
        "weight_block_size": [32, 32],
        "modules_to_not_convert": [
            name.removesuffix(".weight") for name in weights if ".experts." not in name
        ],
    }
    for name in [name for name in weights if ".experts." in name]:
        rows, columns = weights[name].shape
        blocks = weights[name].float().view(rows // 32, 32, columns // 32, 32)
        scale = blocks.abs().amax((1, 3)) / 448
        quantised = (blocks / scale[:, None, :, None]).to(torch.float8_e4m3fn)
        weights |= {name: quantised.view(rows, columns), f"{name}_scale_inv": scale}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))


def test_experts_in_fp8_are_observed_where_a_gpu_could_compute_in_it(tmp_path, monkeypatch):
    exact = _stats(load_causal_model(EMBEDDED_CHECKPOINT, "float32", CPU))
    _write_fp8(EMBEDDED_CHECKPOINT, tmp_path / "fp8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    found = _stats(load_causal_model(tmp_path / "fp8", "float32", CPU))
    error = (found.gate_norm_LE - exact.gate_norm_LE).abs().sum() / exact.gate_norm_LE.sum()
    assert 0 < error < 0.1


def test_gpus_are_filled_evenly_and_nothing_else(monkeypatch):
    free = {2: 70, 3: 80}
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda gpu: (free[gpu.index], 90))
    assert loading._placement(GPUS) == {"device_map": "balanced", "max_memory": free}
    assert loading._placement(GPUS[:1]) == {"device_map": {"": GPUS[0]}}
    assert loading._placement(CPU) == {}


def test_gpus_that_are_too_small_are_refused(tmp_path):
    spilt = SimpleNamespace(hf_device_map={"model.layers.0": 2, "model.layers.1": "cpu"})
    with pytest.raises(BackboneError, match=r"does not fit 2 GPUs: model\.layers\.1"):
        loading._check_placement(tmp_path, spilt, 2)


def test_a_tensor_that_is_missing_is_named(tiny_checkpoint):
    folder = tiny_checkpoint("plain")
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.norm.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(BackboneError, match=r"1 tensors are missing.*model\.norm\.weight"):
        load_causal_model(folder, "float32", CPU)


def test_a_tokenizer_without_a_chat_template_is_refused(tmp_path):
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(EMBEDDED_CHECKPOINT / name, tmp_path)
    with pytest.raises(BackboneError, match="has no chat template"):
        load_tokenizer(tmp_path)
    shutil.copy(EMBEDDED_CHECKPOINT / "chat_template.jinja", tmp_path)
    load_tokenizer(tmp_path)


def test_a_tokenizer_that_cannot_be_loaded_is_refused(tmp_path):
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "NoSuchTokenizer"}')
    with pytest.raises(BackboneError, match="cannot be loaded"):
        load_tokenizer(tmp_path)
