"""Qwen3-MoE: attention layers only, no shared expert, gates renormalised if the model says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slimwise.backbones import qwen_moe
from slimwise.backbones.base import Config, ExpertLayout, MoEModules, TensorRole
from slimwise.core.moe import GateActivation, GateRule, MoEShape

if TYPE_CHECKING:
    from torch import Tensor, nn


class Qwen3MoeBackbone:
    """Layers may be dense: those that mlp_only_layers lists, or that decoder_sparse_step skips."""

    model_types = ("qwen3_moe",)
    refuses_float16 = False

    def shape(self, config: Config) -> MoEShape:
        return MoEShape(
            num_layers=len(self.moe_layers(config)),
            num_experts=qwen_moe.num_experts(config),
            top_k=qwen_moe.count(config, "num_experts_per_tok"),
            hidden_size=qwen_moe.count(config, "hidden_size"),
            expert_width=qwen_moe.count(config, "moe_intermediate_size"),
            shared_expert_width=0,
        )

    def gate_rule(self, config: Config) -> GateRule:
        # Absent means false, as in the family's own configuration class.
        renormalised = bool(config.get("norm_topk_prob", False))
        return GateRule(GateActivation.SOFTMAX, renormalised)

    def dtype(self, config: Config) -> str:
        return qwen_moe.dtype(config)

    def moe_layers(self, config: Config) -> tuple[int, ...]:
        dense = set(config.get("mlp_only_layers") or ())
        step = config.get("decoder_sparse_step", 1)
        layers = range(qwen_moe.count(config, "num_hidden_layers"))
        return tuple(n for n in layers if n not in dense and (n + 1) % step == 0)

    def tensor_role(self, name: str) -> TensorRole:
        return qwen_moe.tensor_role(name)

    def layouts(self, shape: MoEShape) -> tuple[ExpertLayout, ...]:
        return qwen_moe.layouts(shape)

    def pruned_config(self, config: Config, num_kept: int) -> dict[str, Any]:
        return qwen_moe.with_num_experts(config, num_kept)

    def moe_modules(self, model: nn.Module) -> tuple[MoEModules, ...]:
        return qwen_moe.moe_modules(model)

    def router_logits(self, router_output: Any) -> Tensor:
        return router_output[0]
