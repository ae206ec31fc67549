"""The one-pass route: every token picks the teacher's or the student's weights by its position.

Tokens before the split depend on frozen weights only, since attention and recurrence look back:
what the student reads there is the teacher's cache, and no gradient flows into it.
Legend: B sequences, S positions, D hidden.
"""

import torch
from torch import Tensor

from slimwise.distill.batches import SplitBatch
from slimwise.distill.config import DistillationConfig
from slimwise.distill.losses import BatchLoss, batch_loss, targets_of
from slimwise.distill.student import Student


def one_pass_loss(student: Student, batch: SplitBatch, config: DistillationConfig) -> BatchLoss:
    """Loss of the batch; the student reads each sequence whole. SlimWise, Distil."""
    with torch.no_grad():
        student.phases.teacher()
        student.model.eval()
        targets = targets_of(student, _hidden(student, batch)[batch.scored], config)
    student.phases.by_token(batch.is_student_BS)
    student.model.train()
    hidden_TD = _hidden(student, batch)[batch.scored]
    return batch_loss(student, hidden_TD, batch.labels_T, targets, config)


def _hidden(student: Student, batch: SplitBatch) -> Tensor:
    # Without a mask: padding comes last, where no token of a sequence can see it.
    return student.hidden(input_ids=batch.ids_BS, use_cache=False).last_hidden_state
