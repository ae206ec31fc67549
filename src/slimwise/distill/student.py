"""Teacher and student as one model: the loaded weights, and beside them the trained ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers.modeling_layers import GradientCheckpointingLayer

from slimwise.backbones.trainable import TrainableFamily, TrainedModules, trainable_family
from slimwise.core.keep_set import KeepSet
from slimwise.core.masking import router_bias
from slimwise.core.moe import GateRule
from slimwise.core.shared_expert import SharedExpertWeights, initial_correction
from slimwise.distill.phases import Phases
from slimwise.distill.two_valued import TwoValuedNorm, TwoValuedRouter, TwoValuedSharedExpert


@dataclass(frozen=True)
class Student:
    """A causal language model in which phases chooses, token by token, teacher or student.

    modules names what is trained, as in the model before.
    """

    model: Any
    phases: Phases
    family: TrainableFamily
    modules: TrainedModules

    def trained(self) -> dict[str, nn.Parameter]:
        """Trained parameters, float32, by name."""
        named = self.model.named_parameters()
        return {name: parameter for name, parameter in named if parameter.requires_grad}

    def is_router(self, name: str) -> bool:
        """True if the trained parameter of that name is a router's."""
        return name.partition(".trained.")[0] in self.modules.routers

    def hidden(self, **inputs: Any) -> Any:
        """Output of the model without its LM head."""
        return self.model.model(**inputs)

    def logits(self, hidden_TD: Tensor) -> Tensor:
        """Logits of last hidden states."""
        return self.family.logits(self.model, hidden_TD)

    def checkpoint_layers(self) -> None:
        """Compute layers again in the backward pass; caches must then be read-only."""
        self.model.gradient_checkpointing_enable({"use_reentrant": False})
        for module in self.model.modules():
            if isinstance(module, GradientCheckpointingLayer):
                module._can_checkpoint_with_cache = True


def make_student(model: Any, keep_set: KeepSet, rule: GateRule, *, seed: int = 0) -> Student:
    """The student at step 0, which is the pruned model; the model's own modules are replaced.

    All of the model's own weights are frozen and stay where they are.
    """
    family = trainable_family(model.config.model_type)
    modules = family.modules(model)
    phases = Phases()
    model.requires_grad_(False)
    bias_LE = router_bias(keep_set)
    for name, bias_E in zip(modules.routers, bias_LE, strict=True):
        router = model.get_submodule(name)
        bias_E = bias_E.to(next(router.parameters()).device)
        _replace(model, name, lambda frozen, bias_E=bias_E: TwoValuedRouter(
            frozen, phases, family=family, rule=rule, bias_E=bias_E, top_k=keep_set.top_k
        ))  # fmt: skip
    generator = torch.Generator().manual_seed(seed)
    for name in modules.shared_experts:
        _replace(model, name, lambda frozen: TwoValuedSharedExpert(
            frozen, phases, initial_correction(shared_expert_weights(frozen), generator)
        ))  # fmt: skip
    for name in modules.norms:
        _replace(model, name, lambda frozen: TwoValuedNorm(frozen, phases))
    return Student(model, phases, family, modules)


def shared_expert_weights(expert: nn.Module) -> SharedExpertWeights:
    """Projections of a shared expert of any family."""
    names = ("gate_proj.weight", "up_proj.weight", "down_proj.weight")
    return SharedExpertWeights(*(expert.get_parameter(name) for name in names))


def _replace(model: nn.Module, name: str, make: Callable[[nn.Module], nn.Module]) -> None:
    parent, _, attribute = name.rpartition(".")
    owner = model.get_submodule(parent)
    setattr(owner, attribute, make(getattr(owner, attribute)))
