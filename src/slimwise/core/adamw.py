"""AdamW over named float32 parameters, with a linear schedule and a state of plain tensors.

SlimWise, Distil (AdamW); Loshchilov and Hutter, Decoupled weight decay regularization.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

_BETAS = (0.9, 0.95)
_MOMENTS = ("exp_avg", "exp_avg_sq")
_VALUE = "value"


@dataclass(frozen=True)
class ParameterGroup:
    """Names of parameters that share a peak learning rate and a weight decay."""

    names: Sequence[str]
    peak: float
    weight_decay: float


def linear_schedule(step: int, *, warmup_steps: int, num_steps: int) -> float:
    """Learning rate as a fraction of its peak: linear warm-up, then linear to zero."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    return (num_steps - step) / (num_steps - warmup_steps)


class NamedAdamW:
    """Steps the parameters in place; state() and load_state() carry it over an interruption."""

    def __init__(
        self,
        parameters: Mapping[str, Tensor],
        groups: Sequence[ParameterGroup],
        *,
        clip_norm: float,
    ) -> None:
        self._parameters = parameters
        self._clip_norm = clip_norm
        self._adamw = torch.optim.AdamW(
            [
                {
                    "params": [parameters[name] for name in group.names],
                    "lr": group.peak,
                    "peak": group.peak,
                    "weight_decay": group.weight_decay,
                }
                for group in groups
            ],
            betas=_BETAS,
            foreach=True,
        )

    def step(self, factor: float) -> Tensor:
        """One update at that fraction of the peak rates; gradients are then cleared.

        Returns their norm before clipping, which the device may still be computing.
        """
        for group in self._adamw.param_groups:
            group["lr"] = group["peak"] * factor
        norm = nn.utils.clip_grad_norm_(list(self._parameters.values()), self._clip_norm)
        self._adamw.step()  # pyright: ignore[reportUnknownMemberType]
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
            yield f"{_VALUE}.{name}", parameter.detach()
            for key in (*_MOMENTS, "step"):
                yield f"{key}.{name}", self._adamw.state[parameter][key]

    @torch.no_grad()
    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what state() gave, the parameters' values with it."""
        for name, parameter in self._parameters.items():
            parameter.copy_(tensors[f"{_VALUE}.{name}"])
            moments = {key: tensors[f"{key}.{name}"].to(parameter.device) for key in _MOMENTS}
            self._adamw.state[parameter] = {**moments, "step": tensors[f"step.{name}"].cpu()}
