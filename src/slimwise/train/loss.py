"""The training loss of one micro-batch.

Legend: B sequences, S positions, N scored positions, V vocabulary.
"""

from typing import Any

from torch import Tensor
from torch.nn import functional

from slimwise.train.data import IGNORED_LABEL, MicroBatch


def response_loss(
    model: Any, batch: MicroBatch, *, num_scored: int, aux_loss_weight: float, share: float
) -> tuple[Tensor, Tensor]:
    """(loss to back-propagate, cross entropy alone), each this micro-batch's part of the step's.

    num_scored counts the scored tokens of the whole step, share is this micro-batch's part of its
    sequences: summing over micro-batches gives the mean over the step.
    """
    outputs = model(
        input_ids=batch.input_ids_BS,
        attention_mask=batch.attention_mask_BS,
        use_cache=False,
        output_router_logits=True,
    )
    targets_BS = batch.labels_BS[:, 1:]
    scored_BS = targets_BS != IGNORED_LABEL
    logits_NV = outputs.logits[:, :-1][scored_BS].float()
    targets_N = targets_BS[scored_BS]
    cross_entropy = functional.cross_entropy(logits_NV, targets_N, reduction="sum") / num_scored
    return cross_entropy + aux_loss_weight * share * outputs.aux_loss, cross_entropy.detach()
