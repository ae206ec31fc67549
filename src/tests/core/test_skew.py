"""Legend: T tokens, E experts."""

import pytest
import torch

from slimwise.core.skew import expert_scales


def test_scales_are_quantiles_and_a_pool_has_the_largest():
    scales_E = expert_scales(4, 4, 1.0)
    assert scales_E.log().tolist() == pytest.approx([1.1503, 0.3186, -0.3186, -1.1503], abs=1e-4)
    assert torch.equal(expert_scales(4, 2, 1.0), scales_E[:2])
    assert expert_scales(4, 4, 0.0).tolist() == [1.0] * 4


def test_a_strong_skew_reads_fewer_experts_of_the_full_pool():
    generator = torch.Generator().manual_seed(0)

    def distinct(strength):
        scales_E = expert_scales(256, 256, strength).float()
        logits_TE = torch.randn(64, 256, generator=generator) * scales_E
        return logits_TE.topk(8).indices.unique().numel()

    assert distinct(0.0) > 210
    assert 170 < distinct(0.18) < 210
    assert distinct(1.0) < 100
