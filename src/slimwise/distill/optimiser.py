"""The update of a student's trained parameters, routers at a rate of their own."""

from collections import defaultdict
from collections.abc import Mapping

from torch import Tensor

from slimwise.core.adamw import NamedAdamW, ParameterGroup, linear_schedule
from slimwise.distill.config import DistillationConfig
from slimwise.distill.student import Student


class StudentOptimiser:
    """Steps the float32 parameters; its state is a flat dict of tensors."""

    def __init__(self, student: Student, config: DistillationConfig) -> None:
        self._config = config
        self._adamw = NamedAdamW(
            student.trained(), _groups(student, config), clip_norm=config.clip_norm
        )

    def step(self, step: int) -> Tensor:
        """One update from the gradients, which are then cleared; returns their norm unclipped.

        The device may still be at work: reading the norm waits for it.
        """
        return self._adamw.step(schedule(step, self._config))

    @property
    def num_steps(self) -> int:
        """Updates made so far, those before a restored state included."""
        return self._adamw.num_steps

    def state(self) -> dict[str, Tensor]:
        """Parameters, moments and step count, named by parameter."""
        return self._adamw.state()

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what state() gave, and the student's weights with it."""
        self._adamw.load_state(tensors)


def schedule(step: int, config: DistillationConfig) -> float:
    """Learning rate as a fraction of its peak."""
    return linear_schedule(step, warmup_steps=config.warmup_steps, num_steps=config.steps)


def _groups(student: Student, config: DistillationConfig) -> list[ParameterGroup]:
    """Parameters that share learning rate and decay: few groups are few kernels a step."""
    members: dict[tuple[float, float], list[str]] = defaultdict(list)
    for name, parameter in student.trained().items():
        ratio = config.router_lr_ratio if student.is_router(name) else 1.0
        decay = config.weight_decay if parameter.dim() >= 2 else 0.0
        members[config.learning_rate * ratio, decay].append(name)
    return [ParameterGroup(names, peak, decay) for (peak, decay), names in members.items()]
