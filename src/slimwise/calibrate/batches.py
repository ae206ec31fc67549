"""Padded batches of token sequences.

Legend: B sequences, S positions.
"""

from collections.abc import Iterable, Iterator, Sequence
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
    def num_tokens(self) -> int:
        return int(self.mask_BS.sum())


def token_batches(sequences: Iterable[Sequence[int]], batch_tokens: int) -> Iterator[TokenBatch]:
    """Batches of at most batch_tokens positions, or of one sequence; the longest come first.

    Neighbours in length share a batch, and a batch too large for the memory fails at once.
    """
    rows: list[Sequence[int]] = []
    for sequence in sorted(sequences, key=len, reverse=True):
        if rows and (len(rows) + 1) * len(rows[0]) > batch_tokens:
            yield _padded(rows)
            rows = []
        rows.append(sequence)
    if rows:
        yield _padded(rows)


def _padded(rows: Sequence[Sequence[int]]) -> TokenBatch:
    ids = [torch.tensor(row) for row in rows]
    masks = [torch.ones_like(row) for row in ids]
    return TokenBatch(
        pad_sequence(ids, batch_first=True, padding_value=_PADDING_ID),
        pad_sequence(masks, batch_first=True),
    )
