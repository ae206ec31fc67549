"""Where a sequence passes from the teacher to the student."""

import random

from slimwise.core.vocabulary import Distillation


def draw_split(rule: Distillation, num_tokens: int, rng: random.Random) -> int:
    """The split point s: the teacher reads positions [0, s), the student continues from s.

    Uniform over [0, num_tokens), or always 0, which is ordinary distillation. SlimWise, What,
    item 3.
    """
    assert num_tokens > 0
    match rule:
        case Distillation.UNIFORM:
            return rng.randrange(num_tokens)
        case Distillation.ZERO:
            return 0
        case Distillation.NONE:
            raise AssertionError("a decoder that is not distilled has no split point")


def num_scored(split: int, num_tokens: int) -> int:
    """Predictions that the student makes: positions split..num_tokens-2.

    The token at the split is predicted at the position before it, by the teacher. SlimWise, What,
    item 3.
    """
    return max(num_tokens - 1 - split, 0)
