"""Padded batches of token sequences.

Legend: B sequences, S positions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

# Any id will do: padded positions are masked, and never counted.
_PADDING_ID = 0


@dataclass(frozen=True)
class TokenBatch:
    """Right-padded ids and their mask, both [B, S] int64; the mask is 1 on real tokens."""

    ids_BS: Tensor
    mask_BS: Tensor

    @property
    def num_rows(self) -> int:
        """Sequences in the batch."""
        return self.ids_BS.shape[0]

    @property
    def num_positions(self) -> int:
        """Real and padded ones."""
        return self.ids_BS.numel()

    @property
    def num_tokens(self) -> int:
        """Tokens without padding."""
        return int(self.mask_BS.sum())


def first_batch(rows: Iterable[Sequence[int]], batch_tokens: int) -> TokenBatch:
    """The first rows, at least one, as a batch of at most batch_tokens positions.

    The rows come longest first: neighbours share a batch with little padding.
    """
    taken: list[Sequence[int]] = []
    for row in rows:
        if taken and (len(taken) + 1) * len(taken[0]) > batch_tokens:
            break
        taken.append(row)
    ids = [torch.tensor(row) for row in taken]
    masks = [torch.ones_like(row) for row in ids]
    return TokenBatch(
        pad_sequence(ids, batch_first=True, padding_value=_PADDING_ID),
        pad_sequence(masks, batch_first=True),
    )
