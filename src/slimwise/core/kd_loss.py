"""Distillation loss over the teacher's most probable tokens and one bucket for the rest.

Legend: T tokens, N the teacher's most probable tokens, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint  # pyright: ignore[reportUnknownVariableType]


@dataclass(frozen=True)
class TeacherTargets:
    """What the teacher predicts at each position; logarithms are float32.

    rest is None if the N tokens are the whole vocabulary.
    """

    ids_TN: Tensor
    log_probs_TN: Tensor
    rest_T: Tensor | None

    def part(self, begin: int, end: int) -> "TeacherTargets":
        """Targets of positions begin..end-1."""
        rest_T = None if self.rest_T is None else self.rest_T[begin:end]
        return TeacherTargets(self.ids_TN[begin:end], self.log_probs_TN[begin:end], rest_T)


def teacher_targets(logits_TV: Tensor, num_top: int) -> TeacherTargets:
    """The num_top most probable tokens of each position, and how probable all others are together.

    SlimWise, What, item 3.
    """
    log_probs_TV = logits_TV.float().log_softmax(dim=-1)
    log_probs_TN, ids_TN = log_probs_TV.topk(min(num_top, logits_TV.shape[-1]), dim=-1)
    return TeacherTargets(ids_TN, log_probs_TN, _rest(log_probs_TV, ids_TN))


def _rest(log_probs_TV: Tensor, ids_TN: Tensor) -> Tensor | None:
    """Log-probability of all tokens but those; summed, as one minus the others would cancel."""
    if ids_TN.shape[-1] == log_probs_TV.shape[-1]:
        return None
    return log_probs_TV.scatter(-1, ids_TN, -torch.inf).logsumexp(dim=-1)


def kl_divergence(targets: TeacherTargets, logits_TV: Tensor) -> Tensor:
    """KL(teacher || student) over the N tokens and the rest, [T] float32, >= 0.

    At most the divergence over the vocabulary, and equal to it when N = V. SlimWise, What, item 3.
    """
    return _divergence(targets, logits_TV.float().log_softmax(dim=-1))


def _divergence(targets: TeacherTargets, log_probs_TV: Tensor) -> Tensor:
    student_TN = log_probs_TV.gather(-1, targets.ids_TN)
    probs_TN = targets.log_probs_TN.exp()
    kl_T = (probs_TN * (targets.log_probs_TN - student_TN)).sum(dim=-1)
    student_rest_T = _rest(log_probs_TV, targets.ids_TN)
    if targets.rest_T is None or student_rest_T is None:
        return kl_T
    return kl_T + targets.rest_T.exp() * (targets.rest_T - student_rest_T)


def distillation_loss(
    logits_TV: Tensor, labels_T: Tensor, targets: TeacherTargets, alpha: float
) -> tuple[Tensor, Tensor]:
    """Sums over positions of alpha CE + (1 - alpha) KL, and of KL alone. SlimWise, What, item 3."""
    # Once for both: at a vocabulary of 250,000 these are most of what a chunk takes.
    log_probs_TV = logits_TV.float().log_softmax(dim=-1)
    cross_entropy = functional.nll_loss(log_probs_TV, labels_T, reduction="sum")
    divergence = _divergence(targets, log_probs_TV).sum()
    return alpha * cross_entropy + (1 - alpha) * divergence, divergence


def chunked_distillation_loss(
    head: Callable[[Tensor], Tensor],
    hidden_TD: Tensor,
    labels_T: Tensor,
    targets: TeacherTargets,
    *,
    alpha: float,
    chunk_tokens: int,
) -> tuple[Tensor, Tensor]:
    """distillation_loss of head(hidden), with the logits of one chunk in memory at a time.

    Each chunk's logits are computed again for its gradient. SlimWise, What, item 3.
    """

    def part_loss(begin: int) -> tuple[Tensor, Tensor]:
        end = begin + chunk_tokens
        logits_TV = head(hidden_TD[begin:end])
        return distillation_loss(logits_TV, labels_T[begin:end], targets.part(begin, end), alpha)

    losses: list[tuple[Tensor, Tensor]] = [
        checkpoint(part_loss, begin, use_reentrant=False)
        for begin in range(0, len(hidden_TD), chunk_tokens)
    ]
    zero = hidden_TD.sum(dtype=torch.float32) * 0
    return (
        zero + sum(loss for loss, _ in losses),
        zero.detach() + sum(kl.detach() for _, kl in losses),
    )
