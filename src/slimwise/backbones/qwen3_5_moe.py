"""Qwen3.5-MoE: gated-delta-net and attention layers, shared expert, gates always renormalised."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slimwise.backbones import qwen_moe
from slimwise.backbones.base import Config, Dropped, ExpertLayout, MoEModules, TensorRole
from slimwise.core.moe import GateActivation, GateRule, MoEShape

if TYPE_CHECKING:
    from torch import Tensor, nn

_WRAPPER_TYPE = "qwen3_5_moe"
_MTP_LAYERS_KEY = "mtp_num_hidden_layers"


class Qwen35MoeBackbone:
    """The text model, and the wrapper whose text_config nests it beside a vision tower.

    Its multi-token-prediction head has experts of its own, which calibration never sees: a pruned
    checkpoint is written without the head.
    """

    model_types = ("qwen3_5_moe_text", _WRAPPER_TYPE)
    refuses_float16 = True

    def shape(self, config: Config) -> MoEShape:
        text = _text(config)
        return MoEShape(
            num_layers=len(self.moe_layers(config)),
            num_experts=qwen_moe.num_experts(text),
            top_k=qwen_moe.count(text, "num_experts_per_tok"),
            hidden_size=qwen_moe.count(text, "hidden_size"),
            expert_width=qwen_moe.count(text, "moe_intermediate_size"),
            shared_expert_width=qwen_moe.count(text, "shared_expert_intermediate_size"),
        )

    def gate_rule(self, config: Config) -> GateRule:
        return GateRule(GateActivation.SOFTMAX, renormalised=True)

    def dtype(self, config: Config) -> str:
        return qwen_moe.dtype(_text(config), config)

    def moe_layers(self, config: Config) -> tuple[int, ...]:
        return tuple(range(qwen_moe.count(_text(config), "num_hidden_layers")))

    def tensor_role(self, name: str) -> TensorRole:
        return Dropped() if name.startswith("mtp.") else qwen_moe.tensor_role(name)

    def layouts(self, shape: MoEShape) -> tuple[ExpertLayout, ...]:
        return qwen_moe.layouts(shape)

    def pruned_config(self, config: Config, num_kept: int) -> dict[str, Any]:
        pruned = qwen_moe.with_num_experts(_text(config), num_kept)
        if _MTP_LAYERS_KEY in pruned:
            pruned[_MTP_LAYERS_KEY] = 0
        return {**config, "text_config": pruned} if _is_wrapper(config) else pruned

    def moe_modules(self, model: nn.Module) -> tuple[MoEModules, ...]:
        return qwen_moe.moe_modules(model)

    def router_logits(self, router_output: Any) -> Tensor:
        return router_output[0]


def _is_wrapper(config: Config) -> bool:
    return config.get("model_type") == _WRAPPER_TYPE


def _text(config: Config) -> Config:
    return qwen_moe.nested(config, "text_config") if _is_wrapper(config) else config
