import pytest
import torch
from torch.nn import functional

from slimwise.core.masking import router_bias
from slimwise.distill.batches import SplitBatch, SplitSequence
from slimwise.distill.cached import cached_loss, continuation
from slimwise.distill.loop import accumulate
from slimwise.distill.one_pass import one_pass_loss
from slimwise.distill.student import make_student
from slimwise.processes import Processes

from .conftest import FOUR_KEPT, KEEP_SET, LENGTH, SPLITS

ALONE = Processes(0, 1)


def _gradients(student):
    found = {name: parameter.grad for name, parameter in student.trained().items()}
    for parameter in student.trained().values():
        parameter.grad = None
    return {name: torch.zeros(()) if grad is None else grad for name, grad in found.items()}


@pytest.mark.parametrize("split", SPLITS)
def test_both_routes_are_one_computation(build_student, config, sequences, split):
    student, batch = build_student(moved=True), SplitBatch.of(sequences([split], ragged=False))
    outcomes = []
    for route in (one_pass_loss, cached_loss):
        outcome = route(student, batch, config())
        outcome.loss.backward()
        outcomes.append((outcome.loss.detach(), _gradients(student)))
    torch.testing.assert_close(outcomes[0][0], outcomes[1][0], rtol=1e-5, atol=1e-6)
    for name, gradient in outcomes[0][1].items():
        scale = max(gradient.abs().max().item(), 1e-3)
        torch.testing.assert_close(
            gradient, outcomes[1][1][name], rtol=1e-3, atol=1e-4 * scale, msg=name
        )


@pytest.mark.parametrize("split", SPLITS)
def test_a_continuation_is_the_full_forward_of_the_teacher(
    build_student, tiny_model, kind, sequences, split
):
    """With nothing pruned and nothing trained, prefix and continuation give the one-pass logits."""
    student = build_student()
    ids = torch.tensor([sequences([split], ragged=False)[0].ids])
    with torch.no_grad():
        expected = tiny_model(kind)(ids).logits
        student.phases.teacher()
        halves = SplitBatch.of([SplitSequence(tuple(ids[0].tolist()), split)])
        logits = student.logits(student.hidden(**continuation(student, halves)).last_hidden_state)
    found = logits[0, : LENGTH - split]
    torch.testing.assert_close(found, expected[0, split:], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("route", [one_pass_loss, cached_loss])
def test_only_the_student_reads_with_dropout(build_student, config, sequences, route):
    student = build_student()
    student.model.train()
    with_dropout = []
    student.model.model.register_forward_pre_hook(
        lambda module, _: with_dropout.append(module.training)
    )
    route(student, SplitBatch.of(sequences()), config())
    assert not any(with_dropout[:-1])
    assert with_dropout[-1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_students_prefix_is_the_teachers_bit_for_bit(
    tiny_model, kind, tiny_facts, sequences, dtype
):
    """In bfloat16 many router logits are equal: whoever reads must choose as the model itself."""
    student = make_student(tiny_model(kind).to(dtype), KEEP_SET, tiny_facts.gate_rule)
    for parameter in student.trained().values():
        parameter.data += 0.1
    batch = SplitBatch.of(sequences([80] * 8))
    is_prefix_BS = torch.arange(batch.ids_BS.shape[1]) < batch.splits_B[:, None]
    hidden = []
    with torch.no_grad():
        for choose in (student.phases.teacher, lambda: student.phases.by_token(~is_prefix_BS)):
            choose()
            hidden.append(student.hidden(input_ids=batch.ids_BS).last_hidden_state)
    assert torch.equal(hidden[0][is_prefix_BS], hidden[1][is_prefix_BS])
    assert not torch.equal(hidden[0][~is_prefix_BS], hidden[1][~is_prefix_BS])


def test_split_zero_is_ordinary_distillation(build_student, config, sequences):
    """Written without any of our losses: full softmax of both, teacher from a fresh model."""
    student, settings = build_student(moved=True), config(num_top=64, alpha=0.3)
    batch = SplitBatch.of(sequences([0, 0, 0], ragged=False))
    ids = batch.ids_BS[:, :LENGTH]
    found = one_pass_loss(student, batch, settings).loss
    with torch.no_grad():
        student.phases.teacher()
        teacher = student.model(ids).logits[:, :-1].softmax(-1)
        student.phases.student()
        log_student = student.model(ids).logits[:, :-1].log_softmax(-1)
    kl = functional.kl_div(log_student, teacher, reduction="sum")
    cross_entropy = functional.nll_loss(
        log_student.flatten(0, 1), ids[:, 1:].flatten(), reduction="sum"
    )
    torch.testing.assert_close(found, 0.3 * cross_entropy + 0.7 * kl, rtol=1e-5, atol=1e-3)


def test_the_first_step_is_the_pruned_model_bit_for_bit(build_student, tiny_model, kind):
    """The reference is the unmodified model with the router's logits masked from outside."""
    student, pruned = build_student(), tiny_model(kind)
    for name, bias_E in zip(student.modules.routers, router_bias(KEEP_SET), strict=True):
        linear = pruned.get_submodule(name if kind == "hybrid" else f"{name}.proj")
        _mask_logits(linear, bias_E)
    ids = torch.randint(1, 64, (2, 40), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        student.phases.student()
        assert torch.equal(student.model(ids).logits, pruned(ids).logits)


def _mask_logits(router, bias_E):
    def masked(module, inputs, output):
        if isinstance(output, torch.Tensor):
            return output + bias_E
        logits = functional.linear(inputs[0], module.weight) + bias_E
        gates, chosen = logits.softmax(-1, dtype=torch.float32).topk(module.top_k)
        return logits, gates / gates.sum(-1, keepdim=True), chosen

    router.register_forward_hook(masked)


@pytest.mark.parametrize("route", ["one_pass", "cached"])
@pytest.mark.parametrize(
    ("part", "step"), [("router", 2e-2), ("shared_expert", 2e-2), ("norm", 2e-3)]
)
def test_gradients_match_finite_differences(build_student, config, sequences, route, part, step):
    """Along the gradient; as many experts are kept as chosen, so that no choice can jump."""
    student, drawn = build_student(moved=True, keep_set=FOUR_KEPT), sequences([0, 20, 64])
    accumulate(student, drawn, config(route=route), processes=ALONE)
    weights = {name: weight for name, weight in student.trained().items() if _part(name) == part}
    directions = {
        name: gradient for name, gradient in _gradients(student).items() if name in weights
    }
    norm = torch.stack([direction.norm() for direction in directions.values()]).norm().item()
    losses = []
    for move in (step, -2 * step):
        for name, weight in weights.items():
            weight.data += move / norm * directions[name]
        settings = config(route=route)
        found = accumulate(student, drawn, settings, processes=ALONE)
        losses.append(found.read(0, settings).loss)
    assert (losses[0] - losses[1]) / (2 * step) == pytest.approx(norm, rel=0.01)


def _part(name):
    if ".trained." in name:
        return "router"
    return "norm" if name.endswith(".trained") else "shared_expert"


@pytest.mark.parametrize("route", ["one_pass", "cached"])
def test_batching_changes_neither_loss_nor_gradient(build_student, config, sequences, route):
    student, drawn = build_student(moved=True), sequences()
    outcomes = []
    for micro_batch_tokens in (16, 300, 10000):
        settings = config(route=route, micro_batch_tokens=micro_batch_tokens)
        means = accumulate(student, drawn, settings, processes=ALONE).read(0, settings)
        outcomes.append((means.loss, _gradients(student)))
    for loss, gradients in outcomes[1:]:
        assert loss == pytest.approx(outcomes[0][0], rel=1e-5)
        torch.testing.assert_close(gradients, outcomes[0][1], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", ["parallel"])
@pytest.mark.parametrize("by_token", [False, True])
def test_a_gate_scale_of_bfloat16_has_the_gradient_of_all_its_tokens(
    tiny_model, kind, tiny_facts, by_token
):
    """Added up in bfloat16, ones stop counting at 256."""
    student = make_student(tiny_model(kind).bfloat16(), KEEP_SET, tiny_facts.gate_rule)
    router = student.model.get_submodule(student.modules.routers[0])
    hidden = torch.randn(8000, 32, generator=torch.Generator().manual_seed(0)).bfloat16()
    student.phases.student()
    if by_token:
        student.phases.by_token(torch.ones(8000, dtype=torch.bool))
    _, gates, ids = router(hidden)
    gates.sum().backward()
    scale = router.student_parameters()["per_expert_scale"].double()
    unscaled = gates.detach().double() / scale[ids]
    expected = torch.zeros_like(scale).index_add(0, ids.flatten(), unscaled.flatten())
    found = router.trained["per_expert_scale"].grad.double()
    # bfloat16 has eight bits.
    torch.testing.assert_close(found, expected.detach(), rtol=2**-8, atol=1e-6)


def test_checkpointed_layers_change_nothing(build_student, config, sequences):
    for route in (one_pass_loss, cached_loss):
        outcomes = []
        for again in (False, True):
            student = build_student(moved=True)
            if again:
                student.checkpoint_layers()
            outcome = route(student, SplitBatch.of(sequences()), config())
            outcome.loss.backward()
            outcomes.append((outcome.loss.detach(), _gradients(student)))
        torch.testing.assert_close(outcomes[0], outcomes[1])
