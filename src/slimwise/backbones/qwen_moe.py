"""What the Qwen MoE families share: names of expert tensors, and keys of the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slimwise.backbones.base import (
    Config,
    Copied,
    ExpertLayout,
    ExpertStack,
    MoEModules,
    SingleExpert,
    TensorRole,
)
from slimwise.core.moe import MoEShape
from slimwise.errors import BackboneError

if TYPE_CHECKING:
    from torch import nn

# transformers writes the second name for families whose configuration class maps the first to it.
_EXPERT_COUNT_KEYS = ("num_experts", "num_local_experts")
_DTYPE_KEYS = ("dtype", "torch_dtype")

_IN_MOE_LAYER = re.compile(
    r"(?:(?:model|language_model)\.)*layers\.(?P<layer>\d+)\.mlp\.(?P<part>.+)"
)
_OF_ONE_EXPERT = re.compile(r"(?P<prefix>.*\.mlp\.experts\.)(?P<expert>\d+)\.(?P<part>.+)")


def tensor_role(name: str) -> TensorRole:
    """Expert tensors by name, fused or one by one, whatever scales lie beside them."""
    in_layer = _IN_MOE_LAYER.fullmatch(name)
    if in_layer is None:
        return Copied()
    layer, part = int(in_layer["layer"]), in_layer["part"]
    single = _OF_ONE_EXPERT.fullmatch(name)
    if single is not None:
        expert, own_part = int(single["expert"]), single["part"]
        return SingleExpert(layer, own_part, expert, single["prefix"], f".{own_part}")
    if part.startswith(("experts.", "gate.")):
        return ExpertStack(layer, part)
    return Copied()


def layouts(shape: MoEShape) -> tuple[ExpertLayout, ...]:
    """Experts fused into two tensors a layer, or three tensors an expert."""
    hidden, width, experts = shape.hidden_size, shape.expert_width, shape.num_experts
    router = {"gate.weight": (experts, hidden)}
    fused = {
        "experts.gate_up_proj": (experts, 2 * width, hidden),
        "experts.down_proj": (experts, hidden, width),
    }
    split = {
        "gate_proj.weight": (width, hidden),
        "up_proj.weight": (width, hidden),
        "down_proj.weight": (hidden, width),
    }
    return (ExpertLayout({**router, **fused}), ExpertLayout(router, split))


def count(config: Config, key: str) -> int:
    """A positive whole number; BackboneError naming the key if it is missing or something else."""
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BackboneError(
            f"config.json says {key} = {value!r}; expected a whole number >= 1. Use the "
            "configuration that was published with the weights."
        )
    return value


def num_experts(config: Config) -> int:
    """The expert count under whichever of its names the configuration has."""
    keys = [key for key in _EXPERT_COUNT_KEYS if key in config]
    return count(config, keys[0] if keys else _EXPERT_COUNT_KEYS[0])


def with_num_experts(config: Config, num_kept: int) -> dict[str, Any]:
    """The configuration with another expert count, under the names that it already has."""
    counts = {key: num_kept for key in _EXPERT_COUNT_KEYS if key in config}
    return {**config, **counts}


def dtype(*configs: Config) -> str:
    """The type that the first of the configurations with one states."""
    for config, key in ((config, key) for config in configs for key in _DTYPE_KEYS):
        if isinstance(config.get(key), str):
            return config[key].removeprefix("torch.")
    raise BackboneError(
        'config.json states no dtype. Add the type of the weights, such as "dtype": "bfloat16".'
    )


def nested(config: Config, key: str) -> Mapping[str, Any]:
    """A part of the configuration; BackboneError naming the key if it is missing."""
    value = config.get(key)
    if not isinstance(value, Mapping):
        raise BackboneError(
            f"config.json has no {key}, which model_type {config.get('model_type')!r} needs. Use "
            "the configuration that was published with the weights."
        )
    return value


def moe_modules(model: nn.Module) -> tuple[MoEModules, ...]:
    """Router and experts of every layer that has them, in layer order."""
    decoder: Any = getattr(model, "language_model", model)
    blocks = [layer.mlp for layer in decoder.layers if hasattr(layer.mlp, "experts")]
    return tuple(MoEModules(block.gate, block.experts) for block in blocks)
