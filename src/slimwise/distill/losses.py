"""The loss of a batch from the hidden states of teacher and student at the scored positions.

Legend: T scored positions, D hidden.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from slimwise.core.kd_loss import TeacherTargets, chunked_distillation_loss, teacher_targets
from slimwise.distill.config import DistillationConfig
from slimwise.distill.student import Student


@dataclass(frozen=True)
class BatchLoss:
    """Sums over the batch's scored predictions; loss carries the gradient."""

    loss: Tensor
    divergence: Tensor


@torch.no_grad()
def targets_of(student: Student, hidden_TD: Tensor, config: DistillationConfig) -> TeacherTargets:
    """What the teacher predicts from its hidden states, chunk by chunk."""
    parts = [
        teacher_targets(student.logits(part_TD), config.num_top)
        for part_TD in hidden_TD.split(config.logit_chunk_tokens)
    ]
    rests = [part.rest_T for part in parts if part.rest_T is not None]
    return TeacherTargets(
        torch.cat([part.ids_TN for part in parts]),
        torch.cat([part.log_probs_TN for part in parts]),
        torch.cat(rests) if rests else None,
    )


def batch_loss(
    student: Student,
    hidden_TD: Tensor,
    labels_T: Tensor,
    targets: TeacherTargets,
    config: DistillationConfig,
) -> BatchLoss:
    """alpha CE + (1 - alpha) KL of the student's hidden states, summed. SlimWise, Distil."""
    loss, divergence = chunked_distillation_loss(
        student.logits,
        hidden_TD,
        labels_T,
        targets,
        alpha=config.alpha,
        chunk_tokens=config.logit_chunk_tokens,
    )
    return BatchLoss(loss, divergence)
