from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from slimwise.core.keep_set import KeepSet
from slimwise.core.masking import masked_router_logits, router_bias, top_k_gates
from slimwise.core.moe import GateActivation, GateRule

RULES = [GateRule(a, renormalised=r) for a, r in product(GateActivation, (True, False))]


def test_hand_computed_gates():
    logits_TE = torch.tensor([[4.0, 1.0, 2.0, 1.0]]).log()
    plain = GateRule(GateActivation.SOFTMAX, renormalised=False)
    gates_TK, ids_TK = top_k_gates(logits_TE, 2, plain)
    assert ids_TK.tolist() == [[0, 2]]
    torch.testing.assert_close(gates_TK, torch.tensor([[0.5, 0.25]]))
    scaled = GateRule(GateActivation.SOFTMAX, renormalised=True, per_expert_scale=True)
    scale_E = torch.tensor([3.0, 1.0, 6.0, 1.0])
    gates_TK, _ = top_k_gates(logits_TE, 2, scaled, expert_scale_E=scale_E)
    torch.testing.assert_close(gates_TK, torch.tensor([[2.0, 2.0]]))


def test_sigmoid_gates_do_not_compete():
    gates_TK, _ = top_k_gates(
        torch.zeros(1, 4), 2, GateRule(GateActivation.SIGMOID, renormalised=False)
    )
    assert gates_TK.tolist() == [[0.5, 0.5]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_mask_leaves_kept_experts_bit_for_bit(dtype):
    bias_LE = router_bias(KeepSet(((0, 3), (1, 2, 3)), 4, top_k=2), dtype)
    logits_TE = torch.randn(5, 4, generator=torch.Generator().manual_seed(0)).to(dtype)
    masked_TE = masked_router_logits(logits_TE, bias_LE[1])
    assert torch.equal(masked_TE[:, 1:], logits_TE[:, 1:])
    assert masked_TE.isfinite().all()
    assert (masked_TE.float().softmax(-1)[:, 0] == 0).all()


@settings(deadline=None, max_examples=50)
@given(
    st.integers(0, 2**31),
    st.lists(st.integers(0, 15), min_size=4, max_size=16, unique=True),
    st.booleans(),
    st.sampled_from(RULES),
)
def test_masked_equals_pruned_gates(seed, kept, tied, rule):
    """The law of colocated serving: 16 experts of which the router takes 4."""
    generator = torch.Generator().manual_seed(seed)
    logits_TE = torch.randn(8, 16, generator=generator)
    if tied:
        logits_TE = logits_TE.round()
    keep_set = KeepSet((tuple(sorted(kept)),), 16, top_k=4)
    masked_TE = masked_router_logits(logits_TE, router_bias(keep_set)[0])
    masked_gates_TK, masked_ids_TK = top_k_gates(masked_TE, 4, rule)
    pruned_gates_TK, pruned_ids_TK = top_k_gates(logits_TE[:, sorted(kept)], 4, rule)
    assert torch.equal(torch.tensor(sorted(kept))[pruned_ids_TK], masked_ids_TK)
    # One ulp or two: the softmax of 16 logits adds zeros in another order than that of fewer.
    torch.testing.assert_close(pruned_gates_TK, masked_gates_TK, rtol=5e-7, atol=0)
