"""AdamW over fp32 master weights of a bf16 model, with a linear schedule."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from slimwise.train.config import TrainConfig

_BETAS = (0.9, 0.95)
_MOMENTS = ("exp_avg", "exp_avg_sq")


class MasterWeightOptimiser:
    """Steps fp32 copies and rounds them into the model; its state is a flat dict of tensors."""

    def __init__(self, model: nn.Module, config: TrainConfig) -> None:
        self._config = config
        self._parameters = dict(model.named_parameters())
        self._masters = {
            name: parameter.detach().float().clone().requires_grad_()
            for name, parameter in self._parameters.items()
        }
        decayed = [master for master in self._masters.values() if master.dim() >= 2]
        undecayed = [master for master in self._masters.values() if master.dim() < 2]
        self._adamw = torch.optim.AdamW(
            [
                {"params": decayed, "weight_decay": config.weight_decay},
                {"params": undecayed, "weight_decay": 0.0},
            ],
            lr=config.learning_rate,
            betas=_BETAS,
        )

    def step(self, step: int) -> float:
        """One update from the model's gradients; returns the gradient norm before clipping."""
        for group in self._adamw.param_groups:
            group["lr"] = learning_rate(step, self._config)
        for name, parameter in self._parameters.items():
            assert parameter.grad is not None, name
            self._masters[name].grad = parameter.grad.float()
            parameter.grad = None
        norm = nn.utils.clip_grad_norm_(list(self._masters.values()), self._config.clip_norm)
        self._adamw.step()
        self._round_into_model()
        return float(norm)

    @property
    def num_steps(self) -> int:
        """Updates made so far, those before a restored state included."""
        states = self._adamw.state.values()
        return int(next(iter(states))["step"]) if states else 0

    def state(self) -> dict[str, Tensor]:
        """Masters, moments and step count, named by parameter."""
        tensors = {f"master.{name}": master.detach() for name, master in self._masters.items()}
        for name, master in self._masters.items():
            moments = self._adamw.state[master]
            tensors |= {f"{key}.{name}": moments[key] for key in (*_MOMENTS, "step")}
        return tensors

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what state() gave, and the model's weights with it."""
        for name, master in self._masters.items():
            master.data.copy_(tensors[f"master.{name}"])
            moments = {key: tensors[f"{key}.{name}"].to(master.device) for key in _MOMENTS}
            self._adamw.state[master] = {**moments, "step": tensors[f"step.{name}"].cpu()}
        self._round_into_model()

    @torch.no_grad()
    def _round_into_model(self) -> None:
        for name, parameter in self._parameters.items():
            parameter.copy_(self._masters[name])


def learning_rate(step: int, config: TrainConfig) -> float:
    """Linear warm-up to the peak, then linear to zero at the last step."""
    if step < config.warmup_steps:
        return config.learning_rate * (step + 1) / config.warmup_steps
    return config.learning_rate * (config.steps - step) / (config.steps - config.warmup_steps)
