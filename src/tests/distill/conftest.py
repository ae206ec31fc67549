"""Tiny students of the families that can be distilled, and sequences for them."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from slimwise.core.keep_set import KeepSet
from slimwise.core.moe import GateRule
from slimwise.distill.batches import SplitSequence
from slimwise.distill.config import DistillationConfig
from slimwise.distill.student import Student, make_student

KEEP_SET = KeepSet(((0, 1, 5, 6, 9, 15), (2, 3, 4, 7, 11, 12)), 16, 4)
FOUR_KEPT = KeepSet(((0, 1, 5, 6), (2, 3, 4, 7)), 16, 4)
LENGTH = 90
SPLITS = (0, 1, 63, 64, 65, LENGTH - 1)


@pytest.fixture(params=["hybrid", "parallel"])
def kind(request) -> str:
    """Gated-delta-net with attention, and sliding-window with full attention."""
    return request.param


@pytest.fixture
def build_student(tiny_model, kind, tiny_facts) -> Callable[..., Student]:
    """A function to a fresh student; moved ones differ from their teacher in every weight."""

    def build(*, moved: bool = False, keep_set: KeepSet = KEEP_SET) -> Student:
        rule: GateRule = tiny_facts.gate_rule
        student = make_student(tiny_model(kind), keep_set, rule)
        if moved:
            rng = torch.Generator().manual_seed(1)
            for parameter in student.trained().values():
                parameter.data += 0.1 * torch.randn(parameter.shape, generator=rng)
        return student

    return build


@pytest.fixture
def config() -> Callable[..., DistillationConfig]:
    """A function to a configuration that tiny models take."""

    def make(**changes: Any) -> DistillationConfig:
        small = {"num_top": 8, "logit_chunk_tokens": 50, "dtype": "float32", "device": "cpu"}
        return DistillationConfig(**{**small, **changes})

    return make


@pytest.fixture
def sequences() -> Callable[..., list[SplitSequence]]:
    """A function from split points to sequences, whose lengths differ unless told otherwise."""

    def draw(splits: Sequence[int] = SPLITS, *, ragged: bool = True) -> list[SplitSequence]:
        rng = random.Random(0)
        lengths = [max(split + 1, LENGTH - 7 * n * ragged) for n, split in enumerate(splits)]
        return [
            SplitSequence(tuple(rng.randrange(1, 64) for _ in range(length)), split)
            for length, split in zip(lengths, splits, strict=True)
        ]

    return draw
