from dataclasses import fields

import pytest
import torch

from slimwise.core.routing_stats import RoutingStats, mixed
from slimwise.errors import ArtifactError


def _random_stats(seed: int) -> RoutingStats:
    """Integer sums: they add exactly in float64."""
    generator = torch.Generator().manual_seed(seed)
    sums = (torch.randint(0, 99, (2, 3), generator=generator) for _ in fields(RoutingStats))
    return RoutingStats(*(each.double() for each in sums))


def test_merge_is_commutative_associative_and_has_a_zero():
    a, b, c = (_random_stats(seed) for seed in range(3))
    for field in fields(RoutingStats):
        name = field.name
        merged = getattr((a + b) + c, name)
        assert torch.equal(merged, getattr(c + (b + a), name))
        assert torch.equal(merged, getattr(a, name) + getattr(b, name) + getattr(c, name))
        assert torch.equal(getattr(a + RoutingStats.zeros(2, 3), name), getattr(a, name))


def test_statistics_of_different_models_do_not_merge():
    with pytest.raises(ArtifactError, match=r"\(2, 3\) with \(2, 4\)"):
        _ = _random_stats(0) + RoutingStats.zeros(2, 4)


def test_a_weight_counts_a_component_that_often():
    a, b = _random_stats(0), _random_stats(1)
    twice = mixed({"a": a, "b": b}, {"a": 2.0})
    for field in fields(RoutingStats):
        expected = getattr(a + a + b, field.name)
        assert torch.equal(getattr(twice, field.name), expected)
    nothing = mixed({"a": a, "b": b}, {"a": 0.0})
    assert torch.equal(nothing.tokens_LE, b.tokens_LE)
