import torch

from slimwise.core.adamw import NamedAdamW, ParameterGroup, linear_schedule


def test_the_rate_climbs_to_its_peak_and_falls_to_zero():
    rates = [linear_schedule(step, warmup_steps=2, num_steps=6) for step in range(6)]
    assert rates == [0.5, 1.0, 1.0, 0.75, 0.5, 0.25]
    assert linear_schedule(0, warmup_steps=0, num_steps=1) == 1.0


def _optimiser(clip_norm=5.0):
    parameters = {name: torch.ones(1, requires_grad=True) for name in ("fast", "slow")}
    groups = [ParameterGroup(["fast"], 0.1, 0.5), ParameterGroup(["slow"], 0.01, 0.0)]
    return parameters, NamedAdamW(parameters, groups, clip_norm=clip_norm)


def _step(parameters, optimiser, gradients=(3.0, 4.0), factor=1.0):
    for parameter, gradient in zip(parameters.values(), gradients, strict=True):
        parameter.grad = torch.tensor([gradient])
    return optimiser.step(factor)


def test_the_first_step_by_hand():
    """The first update of Adam is the sign of the gradient: 1 - 0.1 x 0.5 - 0.1, and 1 - 0.01."""
    parameters, optimiser = _optimiser()
    assert _step(parameters, optimiser) == 5
    values = torch.cat(list(parameters.values())).detach()
    torch.testing.assert_close(values, torch.tensor([0.85, 0.99]))
    assert all(parameter.grad is None for parameter in parameters.values())
    assert optimiser.num_steps == 1


def test_a_restored_state_goes_on_as_the_unbroken_one():
    parameters, optimiser = _optimiser(clip_norm=1.0)
    _step(parameters, optimiser, factor=0.5)
    saved = {name: tensor.clone() for name, tensor in optimiser.state().items()}
    others, restored = _optimiser(clip_norm=1.0)
    restored.load_state(saved)
    assert restored.num_steps == 1
    for these, one in ((parameters, optimiser), (others, restored)):
        _step(these, one, gradients=(-1.0, 2.0))
    for name, parameter in parameters.items():
        assert torch.equal(others[name], parameter)
    assert optimiser.num_steps == restored.num_steps == 2
