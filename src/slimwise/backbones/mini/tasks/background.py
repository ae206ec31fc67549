"""Families that calibration never sees, so that the expert pool holds more than it is scored on."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from slimwise.backbones.mini.tasks.item import TaskItem, Verdict
from slimwise.backbones.mini.tasks.words import LETTERS, WEEKDAYS, invented_word

_LEXICON_SIZE = 160
_ROMAN = (
    (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
    (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)  # fmt: skip


@dataclass(frozen=True)
class BackgroundFamily:
    """A skill given by a function that draws (prompt, working, answer)."""

    name: str
    draw_parts: Callable[[random.Random], tuple[str, str, str]]

    def draw(self, rng: random.Random) -> TaskItem:
        prompt, working, answer = self.draw_parts(rng)
        return TaskItem(prompt, f"{working}\n</think>\n\n{answer}", {"text": answer})

    def grade(self, answer: str, reference: Mapping[str, Any]) -> Verdict:
        """Right if the text is exactly the reference."""
        text = answer.strip()
        correct = text == reference["text"]
        return Verdict(correct, text, "" if correct else "wrong text")


def _spelling(rng: random.Random) -> tuple[str, str, str]:
    word = invented_word(rng, rng.randint(2, 4))
    working = " ".join(reversed(word))
    return f"Spell {word} backwards.", working, word[::-1]


def _sorting(rng: random.Random) -> tuple[str, str, str]:
    values = [rng.randint(1, 99) for _ in range(rng.randint(3, 7))]
    ordered = " ".join(map(str, sorted(values)))
    return f"Sort {' '.join(map(str, values))}.", f"{len(values)} numbers", ordered


def _roman(rng: random.Random) -> tuple[str, str, str]:
    number = rest = rng.randint(1, 399)
    parts = []
    for value, numeral in _ROMAN:
        while rest >= value:
            parts.append(numeral)
            rest -= value
    return f"Write {number} in Roman numerals.", " ".join(parts), "".join(parts)


def _binary(rng: random.Random) -> tuple[str, str, str]:
    number = rest = rng.randint(1, 255)
    lines = []
    while rest:
        lines.append(f"{rest} {rest % 2}")
        rest //= 2
    return f"Write {number} in binary.", "\n".join(lines), f"{number:b}"


def _cipher(rng: random.Random) -> tuple[str, str, str]:
    word, shift = invented_word(rng, rng.randint(2, 3)), rng.randint(1, 3)
    shifted = [LETTERS[(LETTERS.index(letter) + shift) % 26] for letter in word]
    working = " ".join(f"{a}{b}" for a, b in zip(word, shifted, strict=True))
    return f"Shift {word} by {shift}.", working, "".join(shifted)


def _weekday(rng: random.Random) -> tuple[str, str, str]:
    start, days = rng.randrange(7), rng.randint(2, 60)
    working = f"{days}%7={days % 7}"
    prompt = f"Today is {WEEKDAYS[start]}. Which day is it in {days} days?"
    return prompt, working, WEEKDAYS[(start + days) % 7]


def _counting(rng: random.Random) -> tuple[str, str, str]:
    word = invented_word(rng, rng.randint(3, 6))
    letter = rng.choice(word)
    marks = " ".join(f"{c}{int(c == letter)}" for c in word)
    return f"How many {letter} are in {word}?", marks, str(word.count(letter))


def _depth(rng: random.Random) -> tuple[str, str, str]:
    text, depth, depths = "", 0, []
    for _ in range(rng.randint(6, 20)):
        step = 1 if depth == 0 or rng.random() < 0.5 else -1
        depth += step
        text += "(" if step == 1 else ")"
        depths.append(depth)
    return f"How deep is {text}?", " ".join(map(str, depths)), str(max(depths))


def _lexicon() -> tuple[tuple[str, str], ...]:
    rng = random.Random(0)
    words = list(dict.fromkeys(invented_word(rng, 3) for _ in range(4 * _LEXICON_SIZE)))
    return tuple(zip(words[:_LEXICON_SIZE], words[_LEXICON_SIZE : 2 * _LEXICON_SIZE], strict=True))


_LEXICON = _lexicon()


def _translation(rng: random.Random) -> tuple[str, str, str]:
    pairs = rng.sample(_LEXICON, rng.randint(1, 3))
    prompt = f"Translate {' '.join(word for word, _ in pairs)}."
    working = "\n".join(f"{word} {meaning}" for word, meaning in pairs)
    return prompt, working, " ".join(meaning for _, meaning in pairs)


FAMILIES = (
    BackgroundFamily("spelling", _spelling),
    BackgroundFamily("sorting", _sorting),
    BackgroundFamily("roman", _roman),
    BackgroundFamily("binary", _binary),
    BackgroundFamily("cipher", _cipher),
    BackgroundFamily("weekday", _weekday),
    BackgroundFamily("counting", _counting),
    BackgroundFamily("depth", _depth),
    BackgroundFamily("translation", _translation),
)
