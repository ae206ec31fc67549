"""Routing statistics of a model at the cost of the model's own forward pass.

Legend: B sequences, S positions, T tokens, K top-k, P (token, slot) pairs, E experts, L MoE
layers, D hidden, C the sums of RoutingStats in field order.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor, nn
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS

from slimwise.backbones.base import Backbone, MoEModules
from slimwise.calibrate.batches import TokenBatch
from slimwise.core.moe import GateActivation, GateRule
from slimwise.core.routing_stats import RoutingStats
from slimwise.errors import BackboneError

_NAME = "slimwise_observed"
_NUM_SUMS = len(fields(RoutingStats))

ExpertsForward = Callable[[nn.Module, Tensor, Tensor, Tensor], Tensor]


@contextmanager
def observed(model: Any, backbone: Backbone, rule: GateRule) -> Iterator["RoutingObserver"]:
    """An observer of the model, a transformers model without its LM head, for the block's length.

    The model computes bit for bit what it computes unobserved.
    """
    layers = backbone.moe_modules(model)
    unobserved = model.config._experts_implementation
    observer = RoutingObserver(model, layers, _experts_forward(unobserved, layers[0].experts))
    hooks = [
        layer.router.register_forward_hook(observer.router_hook(number, backbone, rule))
        for number, layer in enumerate(layers)
    ]
    ALL_EXPERTS_FUNCTIONS[_NAME] = observer.experts_forward
    model.set_experts_implementation(_NAME)
    try:
        yield observer
    finally:
        model.set_experts_implementation(unobserved)
        del ALL_EXPERTS_FUNCTIONS[_NAME]
        for hook in hooks:
            hook.remove()


class RoutingObserver:
    """Runs the model on batches and adds up what its routers and experts did."""

    def __init__(
        self, model: nn.Module, layers: tuple[MoEModules, ...], forward: ExpertsForward
    ) -> None:
        self._model = model
        self._forward = forward
        self._layer_of = {layer.experts: number for number, layer in enumerate(layers)}
        self._router_scores: dict[int, Tensor] = {}
        self._is_real_T = torch.empty(0, dtype=torch.bool)
        self._sums: dict[int, Tensor] = {}

    def observe(self, batch: TokenBatch) -> RoutingStats:
        """Statistics of the batch's real tokens, on the CPU.

        BackboneError names a layer that computes values which are not finite.
        """
        device = next(self._model.parameters()).device
        mask_BS = batch.mask_BS.to(device)
        self._is_real_T = mask_BS.flatten().bool()
        self._sums, self._router_scores = {}, {}
        with torch.inference_mode():
            self._model(batch.ids_BS.to(device), attention_mask=mask_BS, use_cache=False)
        sums = [self._sums[layer].cpu() for layer in range(len(self._layer_of))]
        for layer, sums_CE in enumerate(sums):
            if not sums_CE.isfinite().all():
                raise BackboneError(
                    f"MoE layer {layer} computes values that are not finite. Set calibration.dtype "
                    "to float32, or check the weights."
                )
        return RoutingStats(*torch.stack(sums, dim=1))

    def router_hook(
        self, layer: int, backbone: Backbone, rule: GateRule
    ) -> Callable[[nn.Module, Any, Any], None]:
        """A forward hook that keeps the router's scores until the layer's experts have run."""

        def keep_scores(_module: nn.Module, _inputs: Any, output: Any) -> None:
            logits_TE = backbone.router_logits(output).float()
            is_softmax = rule.activation is GateActivation.SOFTMAX
            self._router_scores[layer] = (
                logits_TE.softmax(dim=-1) if is_softmax else logits_TE.sigmoid()
            )

        return keep_scores

    def experts_forward(
        self, experts: nn.Module, hidden_TD: Tensor, ids_TK: Tensor, gates_TK: Tensor
    ) -> Tensor:
        """What the experts compute unobserved; their raw outputs enter the sums on the way.

        Every (token, slot) pair goes through the unmodified implementation as a token of its own
        with one expert and gate 1. Gates are applied and slots added as that does itself.
        """
        num_tokens, top_k = ids_TK.shape
        hidden_PD = hidden_TD.repeat_interleave(top_k, dim=0)
        ones = gates_TK.new_ones(num_tokens * top_k, 1)
        raw_PD = self._forward(experts, hidden_PD, ids_TK.reshape(-1, 1), ones)
        self._add(self._layer_of[experts], raw_PD, ids_TK, gates_TK)
        gated_PD = raw_PD * gates_TK.reshape(-1, 1)
        return gated_PD.view(num_tokens, top_k, -1).sum(dim=1).to(hidden_TD.dtype)

    def _add(self, layer: int, raw_PD: Tensor, ids_TK: Tensor, gates_TK: Tensor) -> None:
        scores_TE = self._router_scores.pop(layer)
        gate_P = gates_TK.double().flatten()
        score_P = scores_TE.gather(1, ids_TK).double().flatten()
        norm_P = torch.linalg.vector_norm(raw_PD, dim=-1, dtype=torch.float32).double()
        one_P = torch.ones_like(norm_P)
        values_CP = torch.stack([one_P, gate_P, norm_P, gate_P * norm_P, score_P, score_P * norm_P])
        # A model on several GPUs has layers on another one than its input.
        is_real_T = self._is_real_T.to(ids_TK.device)
        is_padding_P = ~is_real_T.repeat_interleave(ids_TK.shape[1])
        # Filled, not multiplied: what is computed at padded positions may be NaN.
        values_CP = values_CP.masked_fill(is_padding_P, 0)
        sums_CE = values_CP.new_zeros(_NUM_SUMS, scores_TE.shape[1])
        self._sums[layer] = sums_CE.index_add(1, ids_TK.flatten(), values_CP)


def _experts_forward(implementation: str, experts: Any) -> ExpertsForward:
    """The function behind the name; "eager" is the class's own forward, before its dispatch."""
    eager = type(experts).forward.__wrapped__
    return ALL_EXPERTS_FUNCTIONS.get_interface(implementation, eager)
