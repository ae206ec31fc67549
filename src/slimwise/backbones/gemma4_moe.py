"""Gemma 4 with experts: a dense MLP in parallel to them, and a learned scale on every gate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slimwise.backbones import config_keys
from slimwise.backbones.base import ChatParsers, Config, ExpertLayout, MoEModules, TensorRole
from slimwise.backbones.expert_names import ExpertNames, decoder_layers
from slimwise.backbones.kv_geometry import (
    ATTENTION_KEYS,
    SHARED_ATTENTION_KEYS,
    kv_geometry,
)
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.errors import BackboneError

if TYPE_CHECKING:
    from torch import Tensor, nn

_WRAPPER_TYPE = "gemma4"
_NAMES = ExpertNames(blocks=("",), router="router.proj", scales=("router.per_expert_scale",))


class Gemma4MoeBackbone:
    """The text model, and the wrapper whose text_config nests it beside the towers.

    Every layer adds its dense MLP, which every token takes, to its experts: the shared expert.
    """

    model_types = ("gemma4_text", _WRAPPER_TYPE)
    refuses_float16 = False
    is_distillable = True
    thought_end = "<channel|>"

    def shape(self, config: Config) -> MoEShape:
        text = _text(config)
        return MoEShape(
            num_layers=len(self.moe_layers(config)),
            num_experts=config_keys.num_experts(text),
            top_k=config_keys.count(text, "top_k_experts"),
            hidden_size=config_keys.count(text, "hidden_size"),
            expert_width=config_keys.count(text, "moe_intermediate_size"),
            shared_expert_width=config_keys.count(text, "intermediate_size"),
        )

    def gate_rule(self, config: Config) -> GateRule:
        return GateRule(GateActivation.SOFTMAX, renormalised=True, per_expert_scale=True)

    def dtype(self, config: Config) -> str:
        return config_keys.dtype(_text(config), config)

    def kv_geometry(self, config: Config) -> Mapping[str, Any]:
        return kv_geometry(_text(config), *ATTENTION_KEYS, *SHARED_ATTENTION_KEYS)

    def moe_layers(self, config: Config) -> tuple[int, ...]:
        text = _text(config)
        if not text.get("enable_moe_block"):
            raise BackboneError(
                f"config.json says enable_moe_block = {text.get('enable_moe_block')!r}: this model "
                "of the family has no experts to prune. Use one that has."
            )
        return tuple(range(config_keys.count(text, "num_hidden_layers")))

    def tensor_role(self, name: str) -> TensorRole:
        return _NAMES.tensor_role(name)

    def layouts(self, shape: MoEShape) -> tuple[ExpertLayout, ...]:
        return _NAMES.layouts(shape)

    def pruned_config(self, config: Config, num_kept: int) -> dict[str, Any]:
        pruned = config_keys.with_num_experts(_text(config), num_kept)
        return config_keys.with_text_part(config, _WRAPPER_TYPE, pruned)

    def moe_modules(self, model: nn.Module) -> tuple[MoEModules, ...]:
        # The family's router module returns probabilities: its projection makes the logits.
        return tuple(
            MoEModules(layer.router.proj, layer.experts) for layer in decoder_layers(model)
        )

    def router_logits(self, router_output: Any) -> Tensor:
        return router_output

    def chat_parsers(self, template: str) -> ChatParsers | None:
        return ChatParsers("gemma4", "gemma4")


def _text(config: Config) -> Config:
    return config_keys.text_part(config, _WRAPPER_TYPE)
