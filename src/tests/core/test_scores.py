import pytest
import torch

from slimwise.core.routing_stats import RoutingStats, mixed
from slimwise.core.scores import expert_scores
from slimwise.core.vocabulary import Criterion, ScoringGate


def _stats(tokens, gate, norm, gate_norm, softmax_gate, softmax_gate_norm):
    sums = (tokens, gate, norm, gate_norm, softmax_gate, softmax_gate_norm)
    return RoutingStats(*(torch.tensor([row], dtype=torch.float64) for row in sums))


@pytest.fixture
def stats() -> RoutingStats:
    """Expert 0 sees outputs (3, 4) at gate 0.5 and (6, 8) at gate 0.25, norms 5 and 10.

    Expert 1 sees (0, 1) at gate 0.75; expert 2 sees nothing. Softmax gates are half as large.
    """
    return _stats(
        tokens=[2, 1, 0],
        gate=[0.75, 0.75, 0],
        norm=[15, 1, 0],
        gate_norm=[5, 0.75, 0],
        softmax_gate=[0.375, 0.375, 0],
        softmax_gate_norm=[2.5, 0.375, 0],
    )


@pytest.mark.parametrize(
    ("criterion", "gate", "expected"),
    [
        (Criterion.MASS, ScoringGate.MODEL, [0.75, 0.75, 0]),
        (Criterion.MASS, ScoringGate.SOFTMAX, [0.375, 0.375, 0]),
        (Criterion.EAN, ScoringGate.MODEL, [15, 1, 0]),
        (Criterion.REAP, ScoringGate.MODEL, [2.5, 0.75, 0]),
        (Criterion.REAP, ScoringGate.SOFTMAX, [1.25, 0.375, 0]),
        (Criterion.FREQUENCY, ScoringGate.MODEL, [2 / 3, 1 / 3, 0]),
    ],
)
def test_hand_computed(stats, criterion, gate, expected):
    scores_LE = expert_scores(stats, criterion, gate)
    assert scores_LE.dtype == torch.float64
    assert scores_LE.tolist() == [expected]


@pytest.mark.parametrize("criterion", [Criterion.REAP, Criterion.FREQUENCY])
def test_means_and_shares_do_not_depend_on_how_often_all_tokens_count(stats, criterion):
    """Weights may leave an expert less than one token, which is no reason to divide by one."""
    rarely = mixed({"all": stats}, {"all": 2**-9})
    assert torch.equal(expert_scores(rarely, criterion), expert_scores(stats, criterion))


@pytest.mark.parametrize("criterion", Criterion)
def test_no_tokens_at_all_score_zero(criterion):
    assert not expert_scores(RoutingStats.zeros(2, 3), criterion).any()


@pytest.mark.parametrize("criterion", Criterion)
def test_scores_are_no_alias_of_the_sums(stats, criterion):
    expert_scores(stats, criterion).fill_(-1)
    assert (stats.norm_LE >= 0).all()
    assert (stats.gate_LE >= 0).all()


def test_additive_criteria_of_merged_statistics_add_up(stats):
    merged = stats + stats
    for criterion in (Criterion.MASS, Criterion.EAN):
        both = 2 * expert_scores(stats, criterion)
        assert torch.equal(expert_scores(merged, criterion), both)
    for criterion in (Criterion.REAP, Criterion.FREQUENCY):
        same = expert_scores(stats, criterion)
        assert torch.equal(expert_scores(merged, criterion), same)
