"""The cache route: the teacher reads the prefix, and both continue from its cache.

Legend: B sequences, P prefix positions, S suffix positions, D hidden.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicCache

from slimwise.distill.batches import SplitBatch, round_up
from slimwise.distill.config import DistillationConfig
from slimwise.distill.losses import BatchLoss, batch_loss, targets_of
from slimwise.distill.read_only_cache import ReadOnlyCache
from slimwise.distill.student import Student


@dataclass(frozen=True)
class _Halves:
    """A batch cut at its split points: prefixes end, and suffixes begin, in one column."""

    prefix_BP: Tensor
    prefix_mask_BP: Tensor
    prefix_positions_BP: Tensor
    suffix_BS: Tensor
    suffix_positions_BS: Tensor


def cached_loss(student: Student, batch: SplitBatch, config: DistillationConfig) -> BatchLoss:
    """Loss of the batch; the student reads the suffixes only. SlimWise, Distil."""
    row, position = batch.scored
    scored = row, position - batch.splits_B[row]
    with torch.no_grad():
        student.phases.teacher()
        student.model.eval()
        inputs = continuation(student, batch)
        hidden_BSD = student.hidden(**inputs).last_hidden_state
        targets = targets_of(student, hidden_BSD[scored], config)
    student.phases.student()
    student.model.train()
    hidden_TD = student.hidden(**inputs).last_hidden_state[scored]
    return batch_loss(student, hidden_TD, batch.labels_T, targets, config)


def continuation(student: Student, batch: SplitBatch) -> dict[str, Any]:
    """Model inputs: the suffixes, behind the cache that the teacher leaves after the prefixes.

    Column 0 is each sequence's split point.
    """
    halves = _cut(batch)
    inputs: dict[str, Any] = {
        "input_ids": halves.suffix_BS,
        "position_ids": halves.suffix_positions_BS,
        "use_cache": False,
    }
    if not halves.prefix_mask_BP.any():
        return inputs
    cache = DynamicCache(config=student.model.config)
    student.hidden(
        input_ids=halves.prefix_BP,
        attention_mask=halves.prefix_mask_BP,
        position_ids=halves.prefix_positions_BP,
        past_key_values=cache,
        use_cache=True,
    )
    # Padding behind a suffix needs no mask: no token of the sequence can see it.
    mask_BS = torch.ones_like(halves.suffix_BS)
    mask = torch.cat([halves.prefix_mask_BP, mask_BS], dim=1)
    return {**inputs, "attention_mask": mask, "past_key_values": ReadOnlyCache(cache)}


def _cut(batch: SplitBatch) -> _Halves:
    # A prefix of one column would be read as a token that is generated, with padding unmasked.
    num_prefix = round_up(int(batch.splits_B.max()))
    num_suffix = round_up(int((batch.lengths_B - batch.splits_B).max()))
    device = batch.ids_BS.device
    prefix_positions_BP = torch.arange(num_prefix, device=device) - num_prefix
    prefix_positions_BP = prefix_positions_BP + batch.splits_B[:, None]
    suffix_positions_BS = torch.arange(num_suffix, device=device) + batch.splits_B[:, None]
    last = batch.ids_BS.shape[1] - 1
    return _Halves(
        batch.ids_BS.gather(1, prefix_positions_BP.clamp(min=0)),
        (prefix_positions_BP >= 0).long(),
        prefix_positions_BP.clamp(min=0),
        batch.ids_BS.gather(1, suffix_positions_BS.clamp(max=last)),
        suffix_positions_BS,
    )
