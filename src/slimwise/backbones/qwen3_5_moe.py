"""Qwen3.5-MoE: gated-delta-net and attention layers, shared expert, gates always renormalised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from slimwise.backbones import config_keys
from slimwise.backbones.base import (
    ChatParsers,
    Config,
    Dropped,
    ExpertLayout,
    MoEModules,
    TensorRole,
)
from slimwise.backbones.expert_names import ExpertNames, decoder_layers
from slimwise.backbones.kv_geometry import (
    ATTENTION_KEYS,
    GATED_DELTA_NET_KEYS,
    kv_geometry,
)
from slimwise.backbones.qwen_chat import THOUGHT_END, qwen_chat_parsers
from slimwise.core.moe import GateActivation, GateRule, MoEShape

if TYPE_CHECKING:
    from torch import Tensor, nn

_WRAPPER_TYPE = "qwen3_5_moe"
_MTP_LAYERS_KEY = "mtp_num_hidden_layers"
_NAMES = ExpertNames()


class Qwen35MoeBackbone:
    """The text model, and the wrapper whose text_config nests it beside a vision tower.

    Its multi-token-prediction head has experts of its own, which calibration never sees: a pruned
    checkpoint is written without the head.
    """

    model_types = ("qwen3_5_moe_text", _WRAPPER_TYPE)
    refuses_float16 = True
    is_distillable = True
    thought_end = THOUGHT_END

    def shape(self, config: Config) -> MoEShape:
        text = _text(config)
        return MoEShape(
            num_layers=len(self.moe_layers(config)),
            num_experts=config_keys.num_experts(text),
            top_k=config_keys.count(text, "num_experts_per_tok"),
            hidden_size=config_keys.count(text, "hidden_size"),
            expert_width=config_keys.count(text, "moe_intermediate_size"),
            shared_expert_width=config_keys.count(text, "shared_expert_intermediate_size"),
        )

    def gate_rule(self, config: Config) -> GateRule:
        return GateRule(GateActivation.SOFTMAX, renormalised=True)

    def dtype(self, config: Config) -> str:
        return config_keys.dtype(_text(config), config)

    def kv_geometry(self, config: Config) -> Mapping[str, Any]:
        return kv_geometry(_text(config), *ATTENTION_KEYS, *GATED_DELTA_NET_KEYS)

    def moe_layers(self, config: Config) -> tuple[int, ...]:
        return tuple(range(config_keys.count(_text(config), "num_hidden_layers")))

    def tensor_role(self, name: str) -> TensorRole:
        return Dropped() if name.startswith("mtp.") else _NAMES.tensor_role(name)

    def layouts(self, shape: MoEShape) -> tuple[ExpertLayout, ...]:
        return _NAMES.layouts(shape)

    def pruned_config(self, config: Config, num_kept: int) -> dict[str, Any]:
        pruned = config_keys.with_num_experts(_text(config), num_kept)
        if _MTP_LAYERS_KEY in pruned:
            pruned[_MTP_LAYERS_KEY] = 0
        return config_keys.with_text_part(config, _WRAPPER_TYPE, pruned)

    def moe_modules(self, model: nn.Module) -> tuple[MoEModules, ...]:
        blocks = [layer.mlp for layer in decoder_layers(model)]
        return tuple(MoEModules(block.gate, block.experts) for block in blocks)

    def router_logits(self, router_output: Any) -> Tensor:
        return router_output[0]

    def chat_parsers(self, template: str) -> ChatParsers | None:
        return qwen_chat_parsers(template)


def _text(config: Config) -> Config:
    return config_keys.text_part(config, _WRAPPER_TYPE)
