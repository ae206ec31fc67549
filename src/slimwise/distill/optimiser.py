"""AdamW over the trained parameters, routers at a rate of their own, with a linear schedule."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from slimwise.distill.config import DistillationConfig
from slimwise.distill.student import Student

_BETAS = (0.9, 0.95)
_MOMENTS = ("exp_avg", "exp_avg_sq")


class StudentOptimiser:
    """Steps the float32 parameters; its state is a flat dict of tensors."""

    def __init__(self, student: Student, config: DistillationConfig) -> None:
        self._config = config
        self._parameters = student.trained()
        self._adamw = torch.optim.AdamW(
            list(_groups(student, config)),
            betas=_BETAS,
            foreach=True,
        )

    def step(self, step: int) -> Tensor:
        """One update from the gradients, which are then cleared; returns their norm unclipped.

        The device may still be at work: reading the norm waits for it.
        """
        factor = schedule(step, self._config)
        for group in self._adamw.param_groups:
            group["lr"] = group["peak"] * factor
        parameters = list(self._parameters.values())
        norm = nn.utils.clip_grad_norm_(parameters, self._config.clip_norm)
        self._adamw.step()
        self._adamw.zero_grad()
        return norm

    @property
    def num_steps(self) -> int:
        """Updates made so far, those before a restored state included."""
        states = self._adamw.state.values()
        return int(next(iter(states))["step"]) if states else 0

    def state(self) -> dict[str, Tensor]:
        """Parameters, moments and step count, named by parameter."""
        return dict(self._named_state())

    def _named_state(self) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in self._parameters.items():
            yield f"trained.{name}", parameter.detach()
            for key in (*_MOMENTS, "step"):
                yield f"{key}.{name}", self._adamw.state[parameter][key]

    @torch.no_grad()
    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what state() gave, and the student's weights with it."""
        for name, parameter in self._parameters.items():
            parameter.copy_(tensors[f"trained.{name}"])
            moments = {key: tensors[f"{key}.{name}"].to(parameter.device) for key in _MOMENTS}
            self._adamw.state[parameter] = {**moments, "step": tensors[f"step.{name}"].cpu()}


def schedule(step: int, config: DistillationConfig) -> float:
    """Learning rate as a fraction of its peak: linear warm-up, then linear to zero."""
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    return (config.steps - step) / (config.steps - config.warmup_steps)


def _groups(student: Student, config: DistillationConfig) -> Iterator[dict[str, Any]]:
    """Parameters that share learning rate and decay: few groups are few kernels a step."""
    members: dict[tuple[float, float], list[nn.Parameter]] = defaultdict(list)
    for name, parameter in student.trained().items():
        ratio = config.router_lr_ratio if student.is_router(name) else 1.0
        decay = config.weight_decay if parameter.dim() >= 2 else 0.0
        members[config.learning_rate * ratio, decay].append(parameter)
    for (peak, decay), parameters in members.items():
        yield {"params": parameters, "lr": peak, "peak": peak, "weight_decay": decay}
