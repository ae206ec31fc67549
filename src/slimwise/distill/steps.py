"""The sequences and split points of each training step, a pure function of seed and step."""

import random

from slimwise.core.split_point import draw_split
from slimwise.core.vocabulary import Distillation
from slimwise.distill.batches import SplitSequence
from slimwise.distill.config import DistillationConfig
from slimwise.distill.sources import SequenceSource


def step_sequences(
    source: SequenceSource, rule: Distillation, config: DistillationConfig, step: int
) -> list[SplitSequence]:
    """The step's sequences; both split rules see the same ones."""
    first = step * config.batch_sequences
    numbers = range(first, first + config.batch_sequences)
    return [_sequence(source, rule, config, number) for number in numbers]


def _sequence(
    source: SequenceSource, rule: Distillation, config: DistillationConfig, number: int
) -> SplitSequence:
    ids = source.draw(random.Random(f"{config.seed}:{number}"))
    rng = random.Random(f"{config.seed}:{number}:split")
    return SplitSequence(tuple(ids), draw_split(rule, len(ids), rng))
