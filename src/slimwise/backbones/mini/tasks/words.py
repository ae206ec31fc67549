"""Made-up words and everyday nouns that the task families fill their prompts with."""

import random

NAMES = ("Ana", "Leo", "Zoe", "Tam", "Mia", "Kip", "Ned", "Ivy", "Oto", "Una")
OBJECTS = ("pens", "cards", "shells", "coins", "books", "stamps", "apples", "eggs", "beads", "keys")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_ONSETS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z")
_VOWELS = ("a", "e", "i", "o", "u")


def invented_word(rng: random.Random, num_syllables: int) -> str:
    """A pronounceable word of open syllables that no dictionary needs to hold, e.g. "moruza"."""
    return "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(num_syllables))


def invented_name(rng: random.Random) -> str:
    """An invented place or product name of two or three syllables, capitalised."""
    return invented_word(rng, rng.randint(2, 3)).capitalize()
