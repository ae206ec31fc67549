"""Where distillation trains a loaded model: its routers, shared experts and norms, by family.

Legend: T tokens, E experts, K top-k, D hidden, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from slimwise.backbones.base import Config

Values = Mapping[str, Tensor]
"""A router's parameters by name."""


@dataclass(frozen=True)
class TrainedModules:
    """Module names in a causal language model; routers and shared experts in layer order."""

    routers: tuple[str, ...]
    shared_experts: tuple[str, ...]
    norms: tuple[str, ...]


class TrainableFamily(Protocol):
    """A family whose modules may be replaced by ones with a teacher's and a student's weights."""

    @property
    def shared_width_key(self) -> str:
        """The configuration's name for the width of a shared expert."""
        ...

    def modules(self, model: nn.Module) -> TrainedModules:
        """The modules that distillation trains."""
        ...

    def router_logits(self, router: Any, values: Values, hidden_TD: Tensor) -> Tensor:
        """The router's logits, [T, E], with these values of its parameters."""
        ...

    def expert_scale(self, values: Values) -> Tensor | None:
        """The per-expert factor of the gates, [E], in families that have one."""
        ...

    def router_output(self, logits_TE: Tensor, gates_TK: Tensor, ids_TK: Tensor) -> Any:
        """What the router returns for such logits, gates (float32) and expert ids."""
        ...

    def logits(self, model: Any, hidden_TD: Tensor) -> Tensor:
        """The model's logits, [T, V], of its last hidden states."""
        ...


class Qwen35Trainable:
    """The shared expert's gate multiplies after the expert: a second one beside it shares it."""

    shared_width_key = "shared_expert_intermediate_size"

    def modules(self, model: nn.Module) -> TrainedModules:
        return TrainedModules(
            routers=_ending(model, ".mlp.gate"),
            shared_experts=_ending(model, ".mlp.shared_expert"),
            norms=_scaled_norms(model),
        )

    def router_logits(self, router: Any, values: Values, hidden_TD: Tensor) -> Tensor:
        return functional.linear(hidden_TD, values["weight"])

    def expert_scale(self, values: Values) -> Tensor | None:
        return None

    def router_output(self, logits_TE: Tensor, gates_TK: Tensor, ids_TK: Tensor) -> Any:
        return logits_TE, gates_TK.to(logits_TE.dtype), ids_TK

    def logits(self, model: Any, hidden_TD: Tensor) -> Tensor:
        return model.lm_head(hidden_TD)


class Gemma4Trainable:
    """The dense MLP beside the experts plays the shared expert; its output norm comes after."""

    shared_width_key = "intermediate_size"

    def modules(self, model: nn.Module) -> TrainedModules:
        routers = _ending(model, ".router")
        layers = [name.removesuffix(".router") for name in routers]
        return TrainedModules(
            routers=routers,
            shared_experts=tuple(f"{layer}.mlp" for layer in layers),
            norms=_scaled_norms(model),
        )

    def router_logits(self, router: Any, values: Values, hidden_TD: Tensor) -> Tensor:
        scaled_TD = router.norm(hidden_TD) * values["scale"] * router.scalar_root_size
        return functional.linear(scaled_TD, values["proj.weight"])

    def expert_scale(self, values: Values) -> Tensor | None:
        return values["per_expert_scale"]

    def router_output(self, logits_TE: Tensor, gates_TK: Tensor, ids_TK: Tensor) -> Any:
        return logits_TE.softmax(dim=-1, dtype=torch.float32), gates_TK, ids_TK

    def logits(self, model: Any, hidden_TD: Tensor) -> Tensor:
        logits_TV = model.lm_head(hidden_TD)
        limit = model.config.get_text_config().final_logit_softcapping
        return logits_TV if limit is None else torch.tanh(logits_TV / limit) * limit


_BY_MODEL_TYPE: Mapping[str, TrainableFamily] = MappingProxyType(
    {
        "qwen3_5_moe": Qwen35Trainable(),
        "qwen3_5_moe_text": Qwen35Trainable(),
        "gemma4": Gemma4Trainable(),
        "gemma4_text": Gemma4Trainable(),
    }
)


def trainable_family(model_type: str) -> TrainableFamily:
    """The family of that model_type, which a backbone has that is distillable."""
    return _BY_MODEL_TYPE[model_type]


def widened_config(config: Config) -> dict[str, Any]:
    """The configuration of a checkpoint whose shared experts are twice as wide."""
    key = trainable_family(str(config.get("model_type"))).shared_width_key
    text = config.get("text_config", config)
    wider = {**text, key: 2 * text[key]}
    return {**config, "text_config": wider} if "text_config" in config else wider


def _ending(model: nn.Module, suffix: str) -> tuple[str, ...]:
    return tuple(name for name, _ in _language_modules(model) if name.endswith(suffix))


def _scaled_norms(model: nn.Module) -> tuple[str, ...]:
    return tuple(
        name
        for name, module in _language_modules(model)
        if "RMSNorm" in type(module).__name__ and getattr(module, "weight", None) is not None
    )


def _language_modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Modules of the language model; towers for other inputs stay as they are."""
    towers = ("visual", "vision_tower", "audio_tower", "embed_vision", "embed_audio")
    for name, module in model.named_modules():
        if not any(part in towers for part in name.split(".")):
            yield name, module
