import random
from collections import Counter

from slimwise.core.split_point import draw_split, num_scored
from slimwise.core.vocabulary import Distillation


def test_uniform_splits_cover_every_position_evenly():
    rng = random.Random(0)
    drawn = Counter(draw_split(Distillation.UNIFORM, 5, rng) for _ in range(5000))
    assert set(drawn) == {0, 1, 2, 3, 4}
    assert all(abs(count - 1000) < 150 for count in drawn.values())


def test_zero_is_ordinary_distillation():
    assert {draw_split(Distillation.ZERO, n, random.Random(0)) for n in (1, 2, 9)} == {0}


def test_the_token_at_the_split_is_the_teachers_to_predict():
    assert [num_scored(split, 5) for split in range(5)] == [4, 3, 2, 1, 0]
