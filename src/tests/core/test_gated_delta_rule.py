import pytest
import torch
from torch.nn import functional

from slimwise.core.gated_delta_rule import DeltaInputs, UnitLowerInverse, gated_delta_rule

KEY, VALUE = 8, 12


def _drawn(num_positions, dtype=torch.float32):
    rng = torch.Generator().manual_seed(num_positions)

    def drawn(*shape):
        return torch.randn(2, 3, num_positions, *shape, generator=rng).to(dtype)

    keys = functional.normalize(drawn(KEY), dim=-1)
    decay, beta = -functional.softplus(drawn()), drawn().sigmoid()
    return DeltaInputs(drawn(KEY), keys, drawn(VALUE), decay, beta)


def _by_position(inputs, state):
    """The recurrence as it is defined, one position at a time."""
    outputs = []
    for position in range(inputs.key_BHSK.shape[2]):
        query, key, value, log_decay, beta = (
            tensor[:, :, position] for tensor in vars(inputs).values()
        )
        state = state * log_decay.exp()[..., None, None]
        error = value - torch.einsum("bhk,bhkv->bhv", key, state)
        state = state + torch.einsum("bhk,bhv->bhkv", key, beta[..., None] * error)
        outputs.append(torch.einsum("bhk,bhkv->bhv", query, state))
    return torch.stack(outputs, dim=2), state


@pytest.mark.parametrize("num_positions", [1, 63, 64, 65, 200, 64 * 17, 64 * 20 + 5])
@pytest.mark.parametrize("has_state", [False, True])
def test_blocks_and_groups_are_the_recurrence(num_positions, has_state):
    inputs = _drawn(num_positions)
    leaves = [tensor.requires_grad_() for tensor in vars(inputs).values()]
    before = torch.randn(2, 3, KEY, VALUE, generator=torch.Generator().manual_seed(0))
    outcomes = []
    for outputs, last in (
        gated_delta_rule(inputs, before if has_state else None),
        _by_position(inputs, before if has_state else torch.zeros_like(before)),
    ):
        weights = torch.linspace(-1, 1, outputs.numel()).view_as(outputs)
        gradients = torch.autograd.grad((outputs * weights).sum() + last.sum(), leaves)
        outcomes.append((outputs, last, *gradients))
    for found, expected in zip(*outcomes, strict=True):
        assert (found - expected).norm() <= 1e-5 * (1 + expected.norm())


def test_equal_keys_do_not_spoil_the_inverse():
    """Entries of the inverse stay below 1 while powers of L grow to 10^17."""
    ones = torch.ones(64, 64)
    found = UnitLowerInverse.apply(ones)
    expected = torch.linalg.inv((torch.eye(64) + ones.tril(-1)).double()).float()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)


def test_the_inverse_has_the_gradient_of_the_inverse():
    matrix = torch.randn(2, 64, 64, generator=torch.Generator().manual_seed(0)) / 8
    matrix = matrix.double().requires_grad_()
    weights = torch.randn(2, 64, 64, generator=torch.Generator().manual_seed(1)).double()
    inverse = torch.linalg.inv(torch.eye(64).double() + matrix.tril(-1))
    (expected,) = torch.autograd.grad((inverse * weights).sum(), matrix)
    (found,) = torch.autograd.grad((UnitLowerInverse.apply(matrix) * weights).sum(), matrix)
    torch.testing.assert_close(found, expected)
