"""Maths: word problems of several steps, worked line by line, answered in a box."""

import random
import re
from collections.abc import Mapping
from typing import Any

from slimwise.backbones.mini.tasks.item import TaskItem, Verdict
from slimwise.backbones.mini.tasks.words import NAMES, OBJECTS

_MAX_TOTAL = 999
_BOXED = re.compile(r"\\boxed\{(-?\d+)\}")


class MathsFamily:
    """Running totals of a collection that grows, shrinks, multiplies and is shared out."""

    name = "maths"

    def __init__(self, *, max_steps: int) -> None:
        self._max_steps = max_steps

    def draw(self, rng: random.Random) -> TaskItem:
        name, objects = rng.choice(NAMES), rng.choice(OBJECTS)
        total = rng.randint(5, 99)
        story = [f"{name} has {total} {objects}."]
        working: list[str] = []
        for _ in range(rng.randint(2, self._max_steps)):
            sentence, lines, total = _draw_step(rng, total)
            story.append(f"{name} {sentence}.")
            working += lines
        prompt = f"{' '.join(story)} How many {objects} does {name} have now?"
        response = "\n".join(working) + f"\n</think>\n\nThe answer is \\boxed{{{total}}}."
        return TaskItem(prompt, response, {"value": total})

    def grade(self, answer: str, reference: Mapping[str, Any]) -> Verdict:
        """Right if the last boxed integer is the reference value."""
        boxed = _BOXED.findall(answer)
        if not boxed:
            return Verdict(False, "", "no boxed integer")
        correct = int(boxed[-1]) == reference["value"]
        return Verdict(correct, boxed[-1], "" if correct else "wrong value")


def _draw_step(rng: random.Random, total: int) -> tuple[str, list[str], int]:
    """One event as (sentence, lines of working, new total), within 0.._MAX_TOTAL."""
    while True:
        sentence, lines, value = rng.choice((_add, _subtract, _multiply, _add_boxes, _share))(
            rng, total
        )
        if 0 <= value <= _MAX_TOTAL:
            return sentence, lines, value


def _add(rng: random.Random, total: int) -> tuple[str, list[str], int]:
    count = rng.randint(2, 99)
    value = total + count
    return f"{rng.choice(('buys', 'finds'))} {count} more", [f"{total}+{count}={value}"], value


def _subtract(rng: random.Random, total: int) -> tuple[str, list[str], int]:
    count = rng.randint(2, 99)
    value = total - count
    verb = rng.choice(("loses", "sells", "gives away"))
    return f"{verb} {count}", [f"{total}-{count}={value}"], value


def _multiply(rng: random.Random, total: int) -> tuple[str, list[str], int]:
    word, factor = rng.choice((("doubles", 2), ("triples", 3)))
    value = total * factor
    return f"{word} the collection", [f"{total}*{factor}={value}"], value


def _add_boxes(rng: random.Random, total: int) -> tuple[str, list[str], int]:
    boxes, each = rng.randint(2, 9), rng.randint(2, 12)
    added = boxes * each
    value = total + added
    lines = [f"{boxes}*{each}={added}", f"{total}+{added}={value}"]
    return f"gets {boxes} boxes of {each}", lines, value


def _share(rng: random.Random, total: int) -> tuple[str, list[str], int]:
    divisor = rng.randint(2, 5)
    if total % divisor or total == 0:
        return "", [], -1
    value = total // divisor
    sentence = f"splits them into {divisor} equal parts and keeps one"
    return sentence, [f"{total}/{divisor}={value}"], value
