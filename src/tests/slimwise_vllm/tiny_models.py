"""Tiny random models of the families that vLLM can serve, and their twins without some experts."""

import copy
import re
from collections.abc import Sequence
from typing import Any

import torch
import transformers

NUM_EXPERTS = 16
TOP_K = 4
NUM_LAYERS = 4
KEPT = tuple(
    tuple(range(first, NUM_EXPERTS, 2)) if layer % 2 else (0, 1, 2, 5, 7, 8, 11, 15)
    for layer, first in enumerate((0, 1, 0, 0))
)
SMALL = tuple(kept[2:7] for kept in KEPT)
"""Two keep sets, of 8 and 5 experts a layer."""

_SIZES: dict[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 128,
    "num_hidden_layers": NUM_LAYERS,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "num_experts": NUM_EXPERTS,
    "num_experts_per_tok": TOP_K,
    "moe_intermediate_size": 64,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
    "eos_token_id": None,
    "pad_token_id": None,
}
_ROPE = {
    "rope_type": "default",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.5,
    "mrope_interleaved": True,
    "mrope_section": [6, 5, 5],
}


def _config(family: str) -> Any:
    match family:
        case "qwen3_moe":
            return transformers.Qwen3MoeConfig(**_SIZES, norm_topk_prob=True)
        case "qwen2_moe":
            sizes = {**_SIZES, "shared_expert_intermediate_size": 64}
            return transformers.Qwen2MoeConfig(**sizes)
        case "olmoe":
            sizes = {**_SIZES, "intermediate_size": 64}
            return transformers.OlmoeConfig(**sizes)
        case "mixtral":
            sizes = {key: _SIZES[key] for key in _SIZES if key != "num_experts"}
            return transformers.MixtralConfig(
                **sizes, num_local_experts=NUM_EXPERTS, intermediate_size=64
            )
        case "gemma4":
            sizes = {key: value for key, value in _SIZES.items() if key != "num_experts_per_tok"}
            sizes |= {"enable_moe_block": True, "top_k_experts": TOP_K, "global_head_dim": 64}
            return transformers.Gemma4TextConfig(
                **sizes,
                intermediate_size=64,
                hidden_size_per_layer_input=0,
                vocab_size_per_layer_input=256,
                num_kv_shared_layers=0,
                sliding_window=64,
                layer_types=["sliding_attention", "full_attention"] * 2,
            )
        case "qwen3_5_moe":
            return transformers.Qwen3_5MoeTextConfig(
                **_SIZES,
                layer_types=["linear_attention", "full_attention"] * 2,
                linear_num_key_heads=1,
                linear_num_value_heads=2,
                linear_key_head_dim=64,
                linear_value_head_dim=64,
                shared_expert_intermediate_size=64,
                rope_parameters=_ROPE,
            )
    raise AssertionError(family)


def tiny_moe(family: str) -> Any:
    """A random model whose routers are confident enough to disagree."""
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(_config(family))
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.1)
        if name.endswith("per_expert_scale"):
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    dtype = torch.bfloat16 if family == "qwen3_5_moe" else torch.float32
    return model.to(dtype).eval()


_PER_EXPERT = re.compile(
    r"layers\.(\d+)\..*(experts\.(gate_up_proj|down_proj)|mlp\.gate\.weight"
    r"|router\.proj\.weight|router\.per_expert_scale)$"
)


def sliced(model: Any, kept: Sequence[Sequence[int]]) -> Any:
    """The model without the other experts, made without any code of ours."""
    config = copy.deepcopy(model.config)
    config.num_experts = len(kept[0])
    weights = {}
    for name, value in model.state_dict().items():
        match = _PER_EXPERT.search(name)
        weights[name] = value[list(kept[int(match[1])])] if match else value
    pruned = transformers.AutoModelForCausalLM.from_config(config).to(model.dtype)
    pruned.load_state_dict(weights)
    return pruned.eval()
