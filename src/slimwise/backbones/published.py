"""Published model shapes with random weights, to measure speed and memory without a checkpoint."""

from enum import StrEnum
from types import MappingProxyType
from typing import Any

import torch
import transformers
from transformers import AutoModel, AutoModelForCausalLM, PreTrainedConfig


class PublishedShape(StrEnum):
    """Backbones of the paper by the name of their study."""

    QWEN3_6_35B_A3B = "qwen3_6_35b_a3b"
    GEMMA4_26B_A4B = "gemma4_26b_a4b"


_HUB_IDS = MappingProxyType(
    {
        "Qwen/Qwen3.6-35B-A3B": PublishedShape.QWEN3_6_35B_A3B,
        "google/gemma-4-26B-A4B": PublishedShape.GEMMA4_26B_A4B,
        "google/gemma-4-26B-A4B-it": PublishedShape.GEMMA4_26B_A4B,
    }
)


def published_shape(model: str) -> PublishedShape | None:
    """The shape of the model with that hub id, if the paper studies it."""
    return _HUB_IDS.get(model)


def published_config(shape: PublishedShape) -> PreTrainedConfig:
    """The whole model's configuration, vision tower included. SlimWise, Experimental setup."""
    if shape is PublishedShape.QWEN3_6_35B_A3B:
        # The defaults of the class are this model.
        return transformers.Qwen3_5MoeConfig()
    return transformers.Gemma4Config(
        text_config=_GEMMA4_TEXT, vision_config=_GEMMA4_VISION, audio_config=None
    )


def language_model(shape: PublishedShape, num_layers: int | None) -> PreTrainedConfig:
    """The configuration of the shape's language model, cut to its first layers unless null."""
    text = published_config(shape).get_text_config()
    if num_layers is not None:
        text.num_hidden_layers = num_layers
        text.layer_types = text.layer_types[:num_layers]
    return text


def random_decoder(
    config: PreTrainedConfig, dtype: torch.dtype, device: torch.device, seed: int = 0
) -> Any:
    """The decoder without its LM head, drawn on the device: no copy in host memory, no file."""
    return _drawn(AutoModel, config, dtype, device, seed)


def random_causal_model(
    config: PreTrainedConfig, dtype: torch.dtype, device: torch.device, seed: int = 0
) -> Any:
    """The decoder with its LM head, drawn on the device."""
    return _drawn(AutoModelForCausalLM, config, dtype, device, seed)


def _drawn(
    auto_class: Any, config: PreTrainedConfig, dtype: torch.dtype, device: torch.device, seed: int
) -> Any:
    torch.manual_seed(seed)
    with device:
        model = auto_class.from_config(config.get_text_config(), dtype=dtype)
    return model.eval()


_GEMMA4_TEXT = {
    "hidden_size": 2816,
    "num_hidden_layers": 30,
    "intermediate_size": 2112,
    "moe_intermediate_size": 704,
    "enable_moe_block": True,
    "num_experts": 128,
    "top_k_experts": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "num_global_key_value_heads": 2,
    "head_dim": 256,
    "global_head_dim": 512,
    "attention_k_eq_v": True,
    "hidden_size_per_layer_input": 0,
    "sliding_window": 1024,
    "final_logit_softcapping": 30.0,
}
_GEMMA4_VISION = {
    "hidden_size": 1152,
    "intermediate_size": 4304,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "head_dim": 72,
}
