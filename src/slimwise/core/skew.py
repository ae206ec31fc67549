"""How popular the experts of a random model are made, so that it routes like a real one.

Random weights route uniformly: a step of 64 sequences reads 87 % of 256 experts with top-8, a real
model about 75 % (SlimWise, Why). A router row scaled by s makes its logit vary s times as much, and
top-k takes the largest, so an expert's popularity grows with its scale. Nothing is added to the
step: the weights change, the kernels do not.

The scales are the quantiles of a log-normal distribution. A pruned pool keeps the experts of the
largest scales: REAP keeps those with the largest gate x norm, and here the gate grows with the
scale. It is also the cautious choice, because among popular experts routing is flatter than among
random ones, so that a pruned step reads more of its pool.

Legend: E experts.
"""

from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from slimwise.core.keep_set import KeepSet
from slimwise.errors import KeepSetError

SKEWED_WEIGHTS = "slimwise_skewed"
"""What vLLM's --load-format calls random weights of which some experts are popular."""


@dataclass(frozen=True)
class Skew:
    """How uneven the experts of a full model of num_experts a layer are; seed says who is popular.

    The keys of vLLM's --model-loader-extra-config.
    """

    strength: float
    num_experts: int
    seed: int


def expert_scales(num_experts: int, num_kept: int, strength: float) -> Tensor:
    """Router scales of the num_kept most popular of num_experts experts, largest first.

    exp(strength z) at the quantiles z of the normal distribution; all 1 for strength 0.
    """
    normal = NormalDist()
    ranks = range(num_experts, num_experts - num_kept, -1)
    quantiles = [normal.inv_cdf((rank - 0.5) / num_experts) for rank in ranks]
    return (strength * torch.tensor(quantiles, dtype=torch.float64)).exp()


def popularity_order(layer: int, num_experts: int, seed: int) -> list[int]:
    """Experts of a layer from the most to the least popular."""
    generator = torch.Generator().manual_seed(seed * 1_000_003 + layer)
    return [int(expert) for expert in torch.randperm(num_experts, generator=generator)]


def popular_keep_set(shape: tuple[int, int, int], num_kept: int, seed: int) -> KeepSet:
    """The num_kept most popular experts of each layer; the shape is layers, experts, top-k.

    KeepSetError if there are not so many, or if they are fewer than a token takes.
    """
    num_layers, num_experts, top_k = shape
    if not top_k <= num_kept <= num_experts:
        raise KeepSetError(
            f"a pool of {num_kept} experts cannot be made of {num_experts} with "
            f"top_k={top_k}; keep {top_k}..{num_experts}."
        )
    kept = (popularity_order(layer, num_experts, seed)[:num_kept] for layer in range(num_layers))
    return KeepSet(tuple(tuple(sorted(layer)) for layer in kept), num_experts, top_k)
