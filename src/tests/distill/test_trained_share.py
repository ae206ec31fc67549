"""The published shapes on meta tensors, so that nothing is allocated."""

import pytest
import torch
import transformers

from slimwise.backbones.trainable import trainable_family
from slimwise.core.keep_set import KeepSet
from slimwise.core.moe import GateActivation, GateRule
from slimwise.distill.student import make_student


def _hybrid():
    """Qwen3.6-35B-A3B: the defaults of its configuration class, vision tower included."""
    config = transformers.Qwen3_5MoeConfig()
    return transformers.Qwen3_5MoeForConditionalGeneration, config, 40, 256, 8


def _parallel():
    """Gemma 4-26B-A4B: 25 sliding-window and 5 global layers, vision tower included."""
    text = {
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
    vision = {
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "head_dim": 72,
    }
    config = transformers.Gemma4Config(text_config=text, vision_config=vision, audio_config=None)
    return transformers.Gemma4ForConditionalGeneration, config, 30, 128, 8


@pytest.mark.parametrize(("published", "percent"), [(_hybrid, 0.4186), (_parallel, 2.1188)])
def test_trained_share_of_the_whole_unpruned_model(published, percent):
    """The paper's 0.42 % and 2.12 %."""
    model_class, config, num_layers, num_experts, top_k = published()
    with torch.device("meta"):
        model = model_class(config)
        num_parameters = sum(parameter.numel() for parameter in model.parameters())
        assert len(trainable_family(config.model_type).modules(model).routers) == num_layers
        kept = tuple(range(num_experts // 2))
        keep_set = KeepSet((kept,) * num_layers, num_experts, top_k)
        student = make_student(model, keep_set, GateRule(GateActivation.SOFTMAX, True))
    trained = sum(parameter.numel() for parameter in student.trained().values())
    assert 100 * trained / num_parameters == pytest.approx(percent, abs=5e-5)
