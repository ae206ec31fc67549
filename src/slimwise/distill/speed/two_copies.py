"""The straightforward way to distil, as a yardstick: a second whole model, and full logits of both.

Legend: B sequences, S positions, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from slimwise.distill.batches import SplitBatch, SplitSequence
from slimwise.distill.config import DistillationConfig
from slimwise.distill.student import Student


def two_copies_step(
    teacher: Any, student: Student, sequences: list[SplitSequence], config: DistillationConfig
) -> None:
    """Leave the gradients of the step; both models read every sequence whole, one at a time."""
    device = next(teacher.parameters()).device
    num_scored = sum(sequence.num_scored for sequence in sequences)
    for sequence in sequences:
        batch = SplitBatch.of([sequence]).to(device)
        loss = _loss(teacher, student, batch, config) / num_scored
        loss.backward()


def _loss(teacher: Any, student: Student, batch: SplitBatch, config: DistillationConfig) -> Tensor:
    """alpha CE + (1 - alpha) KL over the whole vocabulary, summed over scored positions."""
    student.phases.student()
    student.model.train()
    with torch.no_grad():
        teacher_BSV = teacher(input_ids=batch.ids_BS, use_cache=False).logits
    student_BSV = student.model(input_ids=batch.ids_BS, use_cache=False).logits
    log_student_TV = student_BSV[batch.scored].float().log_softmax(dim=-1)
    teacher_TV = teacher_BSV[batch.scored].float().softmax(dim=-1)
    divergence = functional.kl_div(log_student_TV, teacher_TV, reduction="sum")
    cross_entropy = functional.nll_loss(log_student_TV, batch.labels_T, reduction="sum")
    return config.alpha * cross_entropy + (1 - config.alpha) * divergence
