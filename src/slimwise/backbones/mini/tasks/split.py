"""Training and test items that never meet: the hash of an item's prompt decides its split."""

import hashlib
import json
import random
from enum import StrEnum

from slimwise.backbones.mini.tasks.item import TaskFamily, TaskItem

_NUM_BUCKETS = 8


class Split(StrEnum):
    """What an item may be used for: no item is in both."""

    TRAIN = "train"
    TEST = "test"


def split_of(item: TaskItem) -> Split:
    """TEST for one prompt (with its tools) in eight, by SHA-256; TRAIN for the others."""
    text = json.dumps([item.prompt, list(item.tools)], sort_keys=True)
    bucket = hashlib.sha256(text.encode()).digest()[0] % _NUM_BUCKETS
    return Split.TEST if bucket == 0 else Split.TRAIN


def draw_item(family: TaskFamily, rng: random.Random, split: Split) -> TaskItem:
    """A fresh item of the split; repeats are possible."""
    while split_of(item := family.draw(rng)) is not split:
        pass
    return item


def draw_items(family: TaskFamily, count: int, seed: int, split: Split) -> list[TaskItem]:
    """count items of the split with distinct prompts; equal arguments give equal items."""
    rng = random.Random(f"{family.name}:{seed}:{split}")
    items: dict[str, TaskItem] = {}
    while len(items) < count:
        item = draw_item(family, rng, split)
        items.setdefault(json.dumps([item.prompt, list(item.tools)]), item)
    return list(items.values())
