"""Tiny random models of the supported families, built by their real classes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from slimwise.inspect.config import BackboneConfig
from slimwise.inspect.run import run as inspect_backbone

NUM_EXPERTS = 16
TOP_K = 4

_SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 16,
    "num_experts": NUM_EXPERTS,
    "num_experts_per_tok": TOP_K,
    "moe_intermediate_size": 8,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
    "dtype": "float32",
}
_HYBRID = {
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 1,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "shared_expert_intermediate_size": 8,
    "rope_parameters": {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "partial_rotary_factor": 0.5,
        "mrope_interleaved": True,
        "mrope_section": [2, 1, 1],
    },
}
_VISION = {
    "depth": 1,
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_heads": 2,
    "out_hidden_size": 32,
    "patch_size": 4,
    "num_position_embeddings": 4,
}

MODELS = ("hybrid", "wrapper", "renormalised", "plain")
"""A hybrid text model, its wrapper with a vision tower, and two attention-only gate rules."""


def _tiny_config(kind: str) -> Any:
    match kind:
        case "hybrid":
            return transformers.Qwen3_5MoeTextConfig(**_SIZES, **_HYBRID)
        case "wrapper":
            text = {**_SIZES, **_HYBRID, "mtp_num_hidden_layers": 1}
            return transformers.Qwen3_5MoeConfig(
                text_config=text, vision_config=_VISION, dtype="float32"
            )
        case _:
            return transformers.Qwen3MoeConfig(**_SIZES, norm_topk_prob=kind == "renormalised")


@pytest.fixture(scope="session")
def tiny_model() -> Callable[[str], Any]:
    """A function from one of MODELS to a float32 model whose routers disagree with each other."""

    def build(kind: str) -> Any:
        torch.manual_seed(0)
        config = _tiny_config(kind)
        wrapper = transformers.Qwen3_5MoeForConditionalGeneration
        model = (
            wrapper(config)
            if kind == "wrapper"
            else transformers.AutoModelForCausalLM.from_config(config)
        )
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.2)
        return model.float().eval()

    return build


@pytest.fixture
def tiny_checkpoint(tmp_path, tiny_model) -> Callable[..., Path]:
    """A function that saves a tiny model with its experts fused, or split as transformers does."""

    def save(kind: str, *, fused: bool = False) -> Path:
        folder = tmp_path / f"{kind}-{'fused' if fused else 'split'}"
        tiny_model(kind).save_pretrained(folder, save_original_format=not fused)
        (folder / "tokenizer.json").write_text("{}")
        return folder

    return save


@pytest.fixture
def inspected(tmp_path) -> Callable[[Path], Path]:
    """A function from a checkpoint's folder to the file of its backbone record."""

    def inspect(folder: Path) -> Path:
        out = tmp_path / f"{folder.name}.json"
        inspect_backbone(BackboneConfig(model=str(folder), name=folder.name), out=out)
        return out

    return inspect
