"""Families of attention layers only, which differ in names: Qwen2, Qwen3, Mixtral and OLMoE."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from slimwise.backbones import config_keys
from slimwise.backbones.base import ChatParsers, Config, ExpertLayout, MoEModules, TensorRole
from slimwise.backbones.expert_names import ExpertNames, decoder_layers
from slimwise.backbones.kv_geometry import ATTENTION_KEYS, kv_geometry
from slimwise.backbones.qwen_chat import THOUGHT_END, qwen_chat_parsers
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.errors import BackboneError

if TYPE_CHECKING:
    from torch import Tensor, nn

_STEP_KEY = "decoder_sparse_step"
_USUAL_NAMES = ExpertNames()


def _no_parsers(template: str) -> None:
    return None


@dataclass(frozen=True)
class AttentionMoeBackbone:
    """A family by its configuration keys and tensor names.

    Layers may be dense: those that mlp_only_layers lists, or that decoder_sparse_step skips.
    always_renormalises is false where the key norm_topk_prob decides.
    """

    model_types: tuple[str, ...]
    expert_width_key: str
    shared_width_key: str | None = None
    always_renormalises: bool = False
    names: ExpertNames = _USUAL_NAMES
    refuses_float16: bool = False
    is_distillable: bool = False
    thought_end: str = THOUGHT_END
    chat_form: Callable[[str], ChatParsers | None] = _no_parsers

    def shape(self, config: Config) -> MoEShape:
        shared_key = self.shared_width_key
        return MoEShape(
            num_layers=len(self.moe_layers(config)),
            num_experts=config_keys.num_experts(config),
            top_k=config_keys.count(config, "num_experts_per_tok"),
            hidden_size=config_keys.count(config, "hidden_size"),
            expert_width=config_keys.count(config, self.expert_width_key),
            shared_expert_width=config_keys.count(config, shared_key) if shared_key else 0,
        )

    def gate_rule(self, config: Config) -> GateRule:
        # Absent means false, as in the families' own configuration classes.
        renormalised = self.always_renormalises or bool(config.get("norm_topk_prob", False))
        return GateRule(GateActivation.SOFTMAX, renormalised)

    def dtype(self, config: Config) -> str:
        return config_keys.dtype(config)

    def kv_geometry(self, config: Config) -> Mapping[str, Any]:
        return kv_geometry(config, *ATTENTION_KEYS)

    def moe_layers(self, config: Config) -> tuple[int, ...]:
        dense = set(config.get("mlp_only_layers") or ())
        step = config_keys.count({_STEP_KEY: 1, **config}, _STEP_KEY)
        layers = range(config_keys.count(config, "num_hidden_layers"))
        sparse = tuple(n for n in layers if n not in dense and (n + 1) % step == 0)
        if not sparse:
            raise BackboneError(
                f"config.json says {_STEP_KEY} = {step} and mlp_only_layers = {sorted(dense)} for "
                f"{len(layers)} layers: this model has no experts to prune. Use one that has."
            )
        return sparse

    def tensor_role(self, name: str) -> TensorRole:
        return self.names.tensor_role(name)

    def layouts(self, shape: MoEShape) -> tuple[ExpertLayout, ...]:
        return self.names.layouts(shape)

    def pruned_config(self, config: Config, num_kept: int) -> dict[str, Any]:
        return config_keys.with_num_experts(config, num_kept)

    def moe_modules(self, model: nn.Module) -> tuple[MoEModules, ...]:
        blocks = [layer.mlp for layer in decoder_layers(model) if hasattr(layer.mlp, "experts")]
        return tuple(MoEModules(block.gate, block.experts) for block in blocks)

    def router_logits(self, router_output: Any) -> Tensor:
        return router_output[0]

    def chat_parsers(self, template: str) -> ChatParsers | None:
        return self.chat_form(template)


QWEN2_MOE = AttentionMoeBackbone(
    model_types=("qwen2_moe",),
    expert_width_key="moe_intermediate_size",
    shared_width_key="shared_expert_intermediate_size",
)
QWEN3_MOE = AttentionMoeBackbone(
    model_types=("qwen3_moe",),
    expert_width_key="moe_intermediate_size",
    chat_form=qwen_chat_parsers,
)
OLMOE = AttentionMoeBackbone(model_types=("olmoe",), expert_width_key="intermediate_size")
MIXTRAL = AttentionMoeBackbone(
    model_types=("mixtral",),
    expert_width_key="intermediate_size",
    always_renormalises=True,
    names=ExpertNames(blocks=("block_sparse_moe.", "mlp."), gate="w1", up="w3", down="w2"),
)
