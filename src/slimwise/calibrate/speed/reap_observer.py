"""The observer of the REAP project on our model: its own class, from a checkout of that project.

It expects blocks that hold a list of experts and return router logits; probes beside the model
present ours that way. Its cheapest setting is used: pruning metrics only.

Legend: T tokens, E experts, D hidden, L MoE layers.
"""

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from slimwise.backbones.base import Backbone
from slimwise.calibrate.speed.expert_loop import expert_output
from slimwise.errors import ConfigError

ReapState = dict[int, dict[str, Any]]


@contextmanager
def observed_by_reap(
    model: nn.Module, backbone: Backbone, top_k: int, source: Path
) -> Iterator[Callable[[], ReapState]]:
    """A function that tells the observer's state by layer; it observes every forward pass."""
    reap = _reap_module(source)
    layers = backbone.moe_modules(model)
    probes = [_Probe(layer.experts, top_k) for layer in layers]
    settings = reap.MoETransformerObserverConfig(
        renormalize_router_weights=True, record_pruning_metrics_only=True
    )
    settings.module_class_name_to_hook_regex = _Probe.__name__
    observer = reap.MoETransformerObserver(_Probes(probes), settings)
    hooks = []
    for layer, probe in zip(layers, probes, strict=True):
        hooks.append(layer.router.register_forward_hook(partial(_keep_logits, probe, backbone)))
        hooks.append(layer.experts.register_forward_hook(partial(_run_probe, probe)))
    try:
        yield observer.report_state
    finally:
        observer.close_hooks()
        for hook in hooks:
            hook.remove()


class _Probe(nn.Module):
    """One MoE layer as the REAP observer expects it."""

    def __init__(self, experts: Any, top_k: int) -> None:
        super().__init__()
        self.num_experts = experts.gate_up_proj.shape[0]
        self.top_k = top_k
        # A plain list: the weights stay the model's own.
        self.experts = [partial(expert_output, experts, n) for n in range(self.num_experts)]
        self.logits_TE = torch.empty(0)

    def forward(self, hidden_BTD: Tensor) -> tuple[Tensor, Tensor]:
        return hidden_BTD, self.logits_TE


class _Probes(nn.Module):
    """The probes under names that end in their layer's number, which the observer reads."""

    def __init__(self, probes: list[_Probe]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(probes)


def _keep_logits(
    probe: _Probe, backbone: Backbone, _router: nn.Module, _inputs: Any, output: Any
) -> None:
    probe.logits_TE = backbone.router_logits(output)


def _run_probe(
    probe: _Probe, _experts: nn.Module, inputs: tuple[Tensor, ...], _output: Any
) -> None:
    probe(inputs[0][None])


def _reap_module(source: Path) -> Any:
    if not (source / "reap" / "observer.py").is_file():
        raise ConfigError(
            f"reap_source = {source} holds no reap/observer.py: name the src folder of a checkout "
            "of github.com/CerebrasResearch/reap."
        )
    if str(source) not in sys.path:
        sys.path.insert(0, str(source))
    return importlib.import_module("reap.observer")
