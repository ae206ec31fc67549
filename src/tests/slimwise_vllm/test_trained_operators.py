"""Legend: T tokens, P pools, D hidden width, H heads, B blocks of columns, E experts, K top-k."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from slimwise_vllm.operators import define_operators

NUM_POOLS, NUM_TOKENS, NUM_HEADS, WIDTH = 3, 6, 2, 8
EPS = 1e-6
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
DTYPES = [torch.float32, torch.bfloat16]
TOLERANCE = {torch.float32: 1e-6, torch.bfloat16: 2e-2}


@pytest.fixture(autouse=True)
def _operators():
    define_operators()


@pytest.fixture
def pool_T():
    return torch.tensor([0, 2, 1, 2, 2, 0, 1, 1], dtype=torch.int32)


def drawn(*shape, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))).to(dtype)


def call(name, device, *arguments) -> Any:
    """The operator's outputs on the CPU."""
    moved = [a.to(device) if isinstance(a, torch.Tensor) else a for a in arguments]
    result = getattr(torch.ops.slimwise, name)(*moved)
    return tuple(r.cpu() for r in result) if isinstance(result, tuple) else result.cpu()


def close(found, expected, dtype):
    torch.testing.assert_close(
        found.float(), expected.float(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype]
    )


def strided(*shape, dtype=torch.float32):
    """Rows that lie apart, as slices of a projection do."""
    return drawn(*shape[:-1], 2 * shape[-1], dtype=dtype)[..., : shape[-1]]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_heads_are_normalised_by_the_weights_of_their_tokens_pool(device, dtype, pool_T):
    hidden_THD = strided(NUM_TOKENS, NUM_HEADS, WIDTH, dtype=dtype)
    weight_PD = drawn(NUM_POOLS, WIDTH, dtype=dtype)
    found = call("rms_norm_by_pool", device, hidden_THD, weight_PD, pool_T, EPS)
    assert found.dtype is dtype
    for token in range(NUM_TOKENS):
        norm = nn.RMSNorm(WIDTH, EPS)
        norm.weight.data = weight_PD[pool_T[token]].float()
        close(found[token], norm(hidden_THD[token].float()), dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_sum_with_a_residual_is_normalised_and_returned(device, dtype, pool_T):
    hidden_TD, residual_TD = strided(NUM_TOKENS, WIDTH, dtype=dtype), drawn(NUM_TOKENS, WIDTH)
    residual_TD = residual_TD.to(dtype)
    weight_PD = drawn(NUM_POOLS, WIDTH)
    arguments = hidden_TD, residual_TD, weight_PD, pool_T, EPS
    normed_TD, sum_TD = call("add_rms_norm_by_pool", device, *arguments)
    expected_TD = hidden_TD.float() + residual_TD.float()
    close(sum_TD, expected_TD, dtype)
    alone_T1D = call("rms_norm_by_pool", "cpu", expected_TD[:, None], weight_PD, pool_T, EPS)
    close(normed_TD, alone_T1D[:, 0], dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sigmoid", [False, True])
def test_a_gated_norm_multiplies_by_the_activated_gate(device, dtype, sigmoid, pool_T):
    hidden_THD = drawn(NUM_TOKENS, NUM_HEADS, WIDTH, dtype=dtype)
    gate_THD = strided(NUM_TOKENS, NUM_HEADS, WIDTH, dtype=dtype)
    weight_PD = drawn(NUM_POOLS, WIDTH)
    arguments = hidden_THD, gate_THD, weight_PD, pool_T, EPS, sigmoid
    found = call("gated_rms_norm_by_pool", device, *arguments)
    normed = call("rms_norm_by_pool", "cpu", hidden_THD.float(), weight_PD, pool_T, EPS)
    activation = functional.sigmoid if sigmoid else functional.silu
    close(found, normed * activation(gate_THD.float()), dtype)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_scaled_by_the_factors_of_their_pool(device, dtype, pool_T):
    values_TD, scale_PD = strided(NUM_TOKENS, WIDTH, dtype=dtype), drawn(NUM_POOLS, WIDTH)
    found = call("scale_by_pool", device, values_TD, scale_PD.to(dtype), pool_T)
    for token in range(NUM_TOKENS):
        close(found[token], values_TD[token] * scale_PD.to(dtype)[pool_T[token]], dtype)


@pytest.mark.parametrize("device", DEVICES)
def test_columns_of_blocks_that_a_pool_lacks_are_zero_whatever_they_were(device, pool_T):
    values_TC = drawn(NUM_TOKENS, 3 * WIDTH)
    values_TC[0, -1] = torch.nan
    kept_PB = torch.tensor([[True, False, False], [True, True, False], [True, False, True]])
    found = call("keep_blocks_of_pool", device, values_TC, kept_PB, pool_T)
    for token in range(NUM_TOKENS):
        for block in range(3):
            columns = slice(block * WIDTH, (block + 1) * WIDTH)
            kept = kept_PB[pool_T[token], block]
            expected = values_TC[token, columns] if kept else torch.zeros(WIDTH)
            assert torch.equal(found[token, columns], expected)


@pytest.mark.parametrize("device", DEVICES)
def test_gates_are_scaled_by_the_factor_of_their_expert_in_the_pool(device, pool_T):
    gates_TK = drawn(NUM_TOKENS, 2)
    ids_TK = torch.tensor([[0, 1], [2, 3], [3, 0], [1, 2], [-1, -1], [0, 3]], dtype=torch.int32)
    scale_PE = drawn(NUM_POOLS, 4)
    found = call("scale_gates_by_pool", device, gates_TK, ids_TK, scale_PE, pool_T)
    for token, slot in ((t, k) for t in range(NUM_TOKENS) for k in range(2)):
        if ids_TK[token, slot] >= 0:
            factor = scale_PE[pool_T[token], ids_TK[token, slot]]
            assert found[token, slot] == gates_TK[token, slot] * factor


def test_fake_operators_agree_with_the_real_ones(pool_T):
    hidden_THD, hidden_TD = strided(NUM_TOKENS, NUM_HEADS, WIDTH), strided(NUM_TOKENS, WIDTH)
    weight_PD, kept_PB = drawn(NUM_POOLS, WIDTH), torch.ones(NUM_POOLS, 2, dtype=torch.bool)
    ids_TK = torch.zeros(NUM_TOKENS, 2, dtype=torch.int32)
    arguments = {
        "rms_norm_by_pool": (hidden_THD, weight_PD, pool_T, EPS),
        "add_rms_norm_by_pool": (hidden_TD, hidden_TD, weight_PD, pool_T, EPS),
        "gated_rms_norm_by_pool": (hidden_THD, hidden_THD, weight_PD, pool_T, EPS, False),
        "scale_by_pool": (hidden_TD, weight_PD, pool_T),
        "keep_blocks_of_pool": (hidden_TD, kept_PB, pool_T),
        "scale_gates_by_pool": (drawn(NUM_TOKENS, 2), ids_TK, weight_PD, pool_T),
    }
    for name, given in arguments.items():
        torch.library.opcheck(getattr(torch.ops.slimwise, name).default, given)
