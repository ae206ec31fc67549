import torch
from torch.nn import functional

from slimwise.core.shared_expert import SharedExpertWeights, concatenated, initial_correction


def _expert(seed: int, width: int) -> SharedExpertWeights:
    rng = torch.Generator().manual_seed(seed)
    gate, up = (torch.randn(width, 6, generator=rng, dtype=torch.float64) for _ in range(2))
    return SharedExpertWeights(gate, up, torch.randn(6, width, generator=rng, dtype=torch.float64))


def _apply(expert: SharedExpertWeights, hidden: torch.Tensor) -> torch.Tensor:
    gated = functional.silu(hidden @ expert.gate_FD.T) * (hidden @ expert.up_FD.T)
    return gated @ expert.down_DF.T


def test_the_concatenation_computes_the_sum():
    first, second = _expert(0, 4), _expert(1, 4)
    hidden = torch.randn(5, 6, dtype=torch.float64)
    merged = concatenated(first, second)
    assert merged.gate_FD.shape == (8, 6)
    torch.testing.assert_close(
        _apply(merged, hidden), _apply(first, hidden) + _apply(second, hidden)
    )


def test_the_correction_begins_at_exactly_nothing_and_can_learn():
    correction = initial_correction(_expert(0, 4), torch.Generator().manual_seed(0))
    assert not correction.down_DF.any()
    assert correction.gate_FD.std() > 0
    assert not torch.equal(correction.gate_FD, correction.up_FD)
