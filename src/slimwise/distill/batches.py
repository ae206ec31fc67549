"""Sequences with their split points, padded into batches.

Legend: B sequences, S positions.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from slimwise.core.split_point import num_scored

# Linear attention works on 64 positions at a time, and shapes that recur are faster.
WIDTH_MULTIPLE = 64
_PADDING_ID = 0


@dataclass(frozen=True)
class SplitSequence:
    """Token ids; the student continues from position split."""

    ids: tuple[int, ...]
    split: int

    @property
    def num_scored(self) -> int:
        """Predictions that the loss is taken on."""
        return num_scored(self.split, len(self.ids))


@dataclass(frozen=True)
class SplitBatch:
    """Right-padded ids [B, S], and each sequence's length and split point [B], int64."""

    ids_BS: Tensor
    lengths_B: Tensor
    splits_B: Tensor

    @classmethod
    def of(cls, sequences: Sequence[SplitSequence], width: int | None = None) -> "SplitBatch":
        """The sequences as a batch of that width, or of the least that fits."""
        longest = max(len(sequence.ids) for sequence in sequences)
        width = round_up(longest) if width is None else width
        ids_BS = torch.full((len(sequences), width), _PADDING_ID)
        for row_S, sequence in zip(ids_BS, sequences, strict=True):
            row_S[: len(sequence.ids)] = torch.tensor(sequence.ids)
        lengths_B = torch.tensor([len(sequence.ids) for sequence in sequences])
        return cls(ids_BS, lengths_B, torch.tensor([sequence.split for sequence in sequences]))

    def to(self, device: torch.device) -> "SplitBatch":
        """The same batch on the device."""
        moved = (tensor.to(device) for tensor in (self.ids_BS, self.lengths_B, self.splits_B))
        return SplitBatch(*moved)

    @cached_property
    def is_student_BS(self) -> Tensor:
        """True from the split to the end of each sequence."""
        position_S = torch.arange(self.ids_BS.shape[1], device=self.ids_BS.device)
        begun_BS = position_S >= self.splits_B[:, None]
        return begun_BS & (position_S < self.lengths_B[:, None])

    @cached_property
    def scored(self) -> tuple[Tensor, Tensor]:
        """Sequence and position of each prediction that is scored: split..length-2."""
        position_S = torch.arange(self.ids_BS.shape[1], device=self.ids_BS.device)
        is_scored_BS = self.is_student_BS & (position_S < self.lengths_B[:, None] - 1)
        row, position = is_scored_BS.nonzero(as_tuple=True)
        return row, position

    @property
    def labels_T(self) -> Tensor:
        """The token that each scored prediction is about."""
        row, position = self.scored
        return self.ids_BS[row, position + 1]


def round_up(num_tokens: int) -> int:
    """The next width that batches have."""
    return -(-num_tokens // WIDTH_MULTIPLE) * WIDTH_MULTIPLE


def micro_batches(
    sequences: Sequence[SplitSequence],
    max_tokens: int,
    size: Callable[[SplitSequence], int],
) -> Iterator[list[SplitSequence]]:
    """Groups of at most max_tokens with padding, or of one sequence; neighbours in size together.

    Sequences of which nothing is scored are left out.
    """
    group: list[SplitSequence] = []
    for sequence in sorted(filter(lambda s: s.num_scored, sequences), key=size, reverse=True):
        widest = max(round_up(len(member.ids)) for member in (*group, sequence))
        if group and (len(group) + 1) * widest > max_tokens:
            yield group
            group = []
        group.append(sequence)
    if group:
        yield group
