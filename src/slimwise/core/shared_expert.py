"""A shared expert beside another, and the one expert of twice the width that both make.

Legend: D hidden, F expert width.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class SharedExpertWeights:
    """Projections of a gated expert: gate and up map D to F, down maps F to D."""

    gate_FD: Tensor
    up_FD: Tensor
    down_DF: Tensor


def concatenated(first: SharedExpertWeights, second: SharedExpertWeights) -> SharedExpertWeights:
    """The expert that computes the sum of both on the same input. SlimWise, What, item 3."""
    return SharedExpertWeights(
        torch.cat([first.gate_FD, second.gate_FD]),
        torch.cat([first.up_FD, second.up_FD]),
        torch.cat([first.down_DF, second.down_DF], dim=1),
    )


def initial_correction(
    first: SharedExpertWeights, generator: torch.Generator
) -> SharedExpertWeights:
    """A second expert (SE2) of the same width that adds nothing yet, float32.

    Its down projection is zero; gate and up are drawn from a normal distribution as wide as the
    first expert's weights. SlimWise, What, item 3.
    """
    return SharedExpertWeights(
        _drawn_like(first.gate_FD, generator),
        _drawn_like(first.up_FD, generator),
        torch.zeros_like(first.down_DF, dtype=torch.float32),
    )


def _drawn_like(weight_FD: Tensor, generator: torch.Generator) -> Tensor:
    if weight_FD.is_meta:
        return torch.empty_like(weight_FD, dtype=torch.float32)
    # Drawn on the CPU, so that every device and every process starts from the same numbers.
    drawn_FD = torch.empty(weight_FD.shape, dtype=torch.float32).normal_(generator=generator)
    return (drawn_FD * weight_FD.float().std().cpu()).to(weight_FD.device)
