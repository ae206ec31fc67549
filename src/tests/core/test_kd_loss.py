import math

import pytest
import torch
from torch.nn import functional

from slimwise.core.kd_loss import (
    chunked_distillation_loss,
    distillation_loss,
    kl_divergence,
    teacher_targets,
)

VOCABULARY = 12


def _logits(seed: int, num_tokens: int = 6) -> torch.Tensor:
    return 2 * torch.randn(num_tokens, VOCABULARY, generator=torch.Generator().manual_seed(seed))


def _full_kl(teacher: torch.Tensor, student: torch.Tensor) -> torch.Tensor:
    p, q = teacher.log_softmax(-1), student.log_softmax(-1)
    return (p.exp() * (p - q)).sum(-1)


def test_by_hand():
    teacher = torch.tensor([[0.5, 0.25, 0.125, 0.125]]).log()
    student = torch.tensor([[0.25, 0.25, 0.25, 0.25]]).log()
    expected = 0.5 * math.log(2) + 0.5 * math.log(0.5 / 0.75)
    assert kl_divergence(teacher_targets(teacher, 1), student).item() == pytest.approx(expected)


@pytest.mark.parametrize("num_top", [1, 4, 11, 12, 64])
def test_zero_for_equals_positive_else_and_at_most_the_full_divergence(num_top):
    teacher, student = _logits(0), _logits(1)
    targets = teacher_targets(teacher, num_top)
    divergence = kl_divergence(targets, student)
    assert (divergence > 0).all()
    assert (divergence <= _full_kl(teacher, student) + 1e-6).all()
    assert kl_divergence(targets, teacher).abs().max() < 1e-6


def test_the_whole_vocabulary_gives_the_full_divergence_of_student_from_teacher():
    teacher, student = _logits(0), _logits(1)
    divergence = kl_divergence(teacher_targets(teacher, VOCABULARY), student)
    torch.testing.assert_close(divergence, _full_kl(teacher, student))
    assert not torch.allclose(divergence, _full_kl(student, teacher), rtol=1e-2)


def test_a_certain_teacher_leaves_loss_and_gradient_finite():
    """The rest holds 1e-9: one minus the other probabilities would be 0 or negative in float32."""
    teacher = torch.full((1, VOCABULARY), math.log(1e-9 / 8)).double()
    teacher[0, :4] = math.log((1 - 1e-9) / 4)
    targets = teacher_targets(teacher.float(), 4)
    assert targets.rest_T is not None
    assert targets.rest_T.item() == pytest.approx(math.log(1e-9), rel=1e-4)
    student = _logits(1, num_tokens=1).requires_grad_()
    loss, _ = distillation_loss(student, torch.tensor([0]), targets, 0.1)
    loss.backward()
    assert student.grad is not None
    assert loss.isfinite()
    assert student.grad.isfinite().all()


def test_chunks_change_neither_loss_nor_gradient():
    labels = torch.arange(6)
    head = torch.randn(VOCABULARY, 5, generator=torch.Generator().manual_seed(2))
    targets = teacher_targets(_logits(0), 3)
    outcomes = []
    for chunk_tokens in (2, 4, 100):
        hidden = torch.randn(6, 5, generator=torch.Generator().manual_seed(3)).requires_grad_()
        loss, divergence = chunked_distillation_loss(
            lambda part: functional.linear(part, head),
            hidden,
            labels,
            targets,
            alpha=0.3,
            chunk_tokens=chunk_tokens,
        )
        loss.backward()
        outcomes.append((loss.detach(), divergence, hidden.grad))
    for outcome in outcomes[1:]:
        torch.testing.assert_close(outcome, outcomes[0])


def test_nothing_scored_is_a_loss_of_zero_with_a_gradient():
    hidden = torch.randn(0, 5).requires_grad_()
    targets = teacher_targets(torch.randn(0, VOCABULARY), 3)
    loss, _ = chunked_distillation_loss(
        lambda part: part, hidden, torch.arange(0), targets, alpha=0.1, chunk_tokens=4
    )
    loss.backward()
    assert loss.item() == 0
