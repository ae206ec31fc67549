"""What decides the layout and meaning of cached state, by the key that states it.

Two checkpoints may hand KV cache and recurrent state to each other if they agree on all of it.
"""

from collections.abc import Mapping
from typing import Any

from slimwise.backbones.base import Config

ATTENTION_KEYS = (
    "num_hidden_layers",
    "layer_types",
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "sliding_window",
    "rope_parameters",
    "rope_theta",
    "rope_scaling",
    "partial_rotary_factor",
    "vocab_size",
)
SHARED_ATTENTION_KEYS = (
    "global_head_dim",
    "num_global_key_value_heads",
    "attention_k_eq_v",
    "num_kv_shared_layers",
    "per_layer_config",
)
GATED_DELTA_NET_KEYS = (
    "full_attention_interval",
    "linear_num_key_heads",
    "linear_num_value_heads",
    "linear_key_head_dim",
    "linear_value_head_dim",
    "linear_conv_kernel_dim",
    "mamba_ssm_dtype",
)


def kv_geometry(text: Config, *keys: str) -> Mapping[str, Any]:
    """The values of those keys, None where the text model's configuration has none."""
    return {key: text.get(key) for key in keys}
