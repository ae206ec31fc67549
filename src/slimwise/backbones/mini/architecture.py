"""The miniature's architecture: a small Qwen3.5-MoE hybrid that trains in minutes on one GPU."""

from typing import Any

from transformers import Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig

VOCAB_SIZE = 512


def mini_config() -> Qwen3_5MoeTextConfig:
    """8 layers (every 4th full attention), 64 experts, top-4, 11.5 M parameters.

    Linear-attention heads are 64 wide because vLLM's CPU kernels refuse 32.
    """
    return Qwen3_5MoeTextConfig(
        vocab_size=VOCAB_SIZE,
        hidden_size=192,
        num_hidden_layers=8,
        layer_types=(["linear_attention"] * 3 + ["full_attention"]) * 2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=64,
        linear_value_head_dim=64,
        num_experts=64,
        num_experts_per_tok=4,
        moe_intermediate_size=32,
        shared_expert_intermediate_size=64,
        max_position_embeddings=1024,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.5,
            "mrope_interleaved": True,
            "mrope_section": [6, 5, 5],
        },
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=2,
        dtype="bfloat16",
    )


def untrained_model() -> Any:
    """The miniature with random weights, float32, drawn from torch's current seed."""
    return Qwen3_5MoeForCausalLM(mini_config())
