"""Which MoE layer of the keep sets each of a model's MoE runners is."""

import re
from dataclasses import dataclass
from typing import Any

from slimwise.errors import KeepSetError
from slimwise_vllm.pools import Pools

_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class MoELayer:
    """An MoE runner of vLLM, and its place among the MoE layers, from 0."""

    index: int
    name: str
    runner: Any


def planned_layers(model: Any, pools: Pools) -> tuple[MoELayer, ...]:
    """The model's MoE layers in order; KeepSetError unless they are those of the keep sets.

    Dense layers between them do not count, as in keep sets. Draft models are other models.
    """
    from vllm.model_executor.layers.fused_moe.runner.moe_runner import MoERunner

    runners = {id(m): m for m in model.modules() if isinstance(m, MoERunner)}.values()
    ordered = sorted(runners, key=lambda runner: _layer_number(runner.layer_name))
    if len(ordered) != pools.num_layers:
        raise KeepSetError(
            f"the keep sets name {pools.num_layers} MoE layers, the model has {len(ordered)}: "
            f"{', '.join(runner.layer_name for runner in ordered) or 'none'}. Serve the model "
            "they were chosen for."
        )
    layers = tuple(MoELayer(i, runner.layer_name, runner) for i, runner in enumerate(ordered))
    for layer in layers:
        _check_counts(layer, pools)
    return layers


def _layer_number(name: str) -> int:
    return int(_NUMBER.findall(name)[0])


def _check_counts(layer: MoELayer, pools: Pools) -> None:
    config = layer.runner.moe_config
    found = (config.num_logical_experts, config.experts_per_token)
    if found != (pools.num_experts, pools.top_k):
        raise KeepSetError(
            f"{layer.name} routes to {found[1]} of {found[0]} experts, the keep sets to "
            f"{pools.top_k} of {pools.num_experts}. Serve the model they were chosen for."
        )
