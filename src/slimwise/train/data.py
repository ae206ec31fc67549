"""The sequences of each training step, a pure function of seed and step.

Legend: B sequences, S positions.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Dataset

from slimwise.backbones.mini.chat import draw_rendered
from slimwise.backbones.mini.tasks.registry import BACKGROUND, PRACTISED
from slimwise.train.config import TrainConfig

IGNORED_LABEL = -100
_WIDTH_MULTIPLE = 16


@dataclass(frozen=True)
class MicroBatch:
    """Right-padded sequences with the response's tokens as labels, all int64."""

    input_ids_BS: Tensor
    attention_mask_BS: Tensor
    labels_BS: Tensor

    def to(self, device: torch.device) -> "MicroBatch":
        """The same batch on the device."""
        return MicroBatch(
            self.input_ids_BS.to(device, non_blocking=True),
            self.attention_mask_BS.to(device, non_blocking=True),
            self.labels_BS.to(device, non_blocking=True),
        )

    @property
    def num_scored(self) -> int:
        """Tokens that the loss is taken on."""
        return int((self.labels_BS != IGNORED_LABEL).sum())

    @property
    def num_tokens(self) -> int:
        """Tokens without padding."""
        return int(self.attention_mask_BS.sum())


class TrainingSteps(Dataset[list[MicroBatch]]):
    """Maps a step to its micro-batches, shortest sequences first."""

    def __init__(self, config: TrainConfig, tokenizer: Any) -> None:
        self._config = config
        self._tokenizer = tokenizer

    def __len__(self) -> int:
        return self._config.steps

    def __getitem__(self, step: int) -> list[MicroBatch]:
        config = self._config
        rng = random.Random(f"{config.seed}:{step}")
        sequences = sorted(
            (self._draw(rng) for _ in range(config.batch_sequences)), key=lambda s: len(s[0] + s[1])
        )
        size = config.micro_batch_sequences
        return [
            pad_sequences(sequences[start : start + size])
            for start in range(0, len(sequences), size)
        ]

    def _draw(self, rng: random.Random) -> tuple[list[int], list[int]]:
        families = BACKGROUND if rng.random() < self._config.background_share else PRACTISED
        family = families[rng.choice(tuple(families))]
        return draw_rendered(self._tokenizer, family, rng, self._config.max_sequence_tokens)


def pad_sequences(sequences: Sequence[tuple[list[int], list[int]]], pad_id: int = 0) -> MicroBatch:
    """(prompt, response) pairs as one right-padded batch whose labels are the responses."""
    longest = max(len(prompt) + len(response) for prompt, response in sequences)
    width = -(-longest // _WIDTH_MULTIPLE) * _WIDTH_MULTIPLE
    input_ids_BS = torch.full((len(sequences), width), pad_id)
    attention_mask_BS = torch.zeros_like(input_ids_BS)
    labels_BS = torch.full_like(input_ids_BS, IGNORED_LABEL)
    for row, (prompt, response) in enumerate(sequences):
        end = len(prompt) + len(response)
        input_ids_BS[row, :end] = torch.tensor(prompt + response)
        attention_mask_BS[row, :end] = 1
        labels_BS[row, len(prompt) : end] = torch.tensor(response)
    return MicroBatch(input_ids_BS, attention_mask_BS, labels_BS)
