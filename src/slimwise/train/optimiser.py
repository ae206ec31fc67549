"""The update of a bf16 model by way of fp32 master weights."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from slimwise.core.adamw import NamedAdamW, ParameterGroup, linear_schedule
from slimwise.train.config import TrainConfig


class MasterWeightOptimiser:
    """Steps fp32 copies and rounds them into the model; its state is a flat dict of tensors."""

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        self._config = config
        self._parameters = dict(model.named_parameters())
        self._masters = {
            name: parameter.detach().float().clone().requires_grad_()
            for name, parameter in self._parameters.items()
        }
        matrices = [name for name, master in self._masters.items() if master.dim() >= 2]
        others = [name for name, master in self._masters.items() if master.dim() < 2]
        peak, decay = config.learning_rate, config.weight_decay
        groups = [ParameterGroup(matrices, peak, decay), ParameterGroup(others, peak, 0.0)]
        self._adamw = NamedAdamW(self._masters, groups, clip_norm=config.clip_norm)

    def step(self, step: int) -> float:
        """One update from the model's gradients; returns the gradient norm before clipping."""
        for name, parameter in self._parameters.items():
            assert parameter.grad is not None, name
            self._masters[name].grad = parameter.grad.float()
            parameter.grad = None
        norm = self._adamw.step(schedule(step, self._config))
        self._round_into_model()
        return float(norm)

    @property
    def num_steps(self) -> int:
        """Updates made so far, those before a restored state included."""
        return self._adamw.num_steps

    def state(self) -> dict[str, Tensor]:
        """Masters, moments and step count, named by parameter."""
        return self._adamw.state()

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what state() gave, and the model's weights with it."""
        self._adamw.load_state(tensors)
        self._round_into_model()

    @torch.no_grad()
    def _round_into_model(self) -> None:
        for name, parameter in self._parameters.items():
            parameter.copy_(self._masters[name])


def learning_rate(step: int, config: TrainConfig) -> float:
    """The rate of that step."""
    return config.learning_rate * schedule(step, config)


def schedule(step: int, config: TrainConfig) -> float:
    """Learning rate as a fraction of its peak."""
    return linear_schedule(step, warmup_steps=config.warmup_steps, num_steps=config.steps)
