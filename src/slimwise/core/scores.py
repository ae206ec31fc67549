"""Pruning criteria as views of routing statistics: the higher, the longer an expert is kept.

Legend: L MoE layers, E experts.
"""

from torch import Tensor

from slimwise.core.routing_stats import RoutingStats
from slimwise.core.vocabulary import Criterion, ScoringGate


def expert_scores(
    stats: RoutingStats, criterion: Criterion, gate: ScoringGate = ScoringGate.MODEL
) -> Tensor:
    """Each expert's score by the criterion, [L, E] float64, >= 0. SlimWise, Calibrate."""
    match criterion:
        case Criterion.MASS:
            return mass_scores(stats, gate)
        case Criterion.EAN:
            return ean_scores(stats)
        case Criterion.REAP:
            return reap_scores(stats, gate)
        case Criterion.FREQUENCY:
            return frequency_scores(stats)


def mass_scores(stats: RoutingStats, gate: ScoringGate = ScoringGate.MODEL) -> Tensor:
    """Sum of gates over the tokens routed to each expert, [L, E] float64. SlimWise, Calibrate."""
    sums_LE = stats.gate_LE if gate is ScoringGate.MODEL else stats.softmax_gate_LE
    return sums_LE.clone()


def ean_scores(stats: RoutingStats) -> Tensor:
    """Expert activation norm: sum of ||expert output||_2 over the tokens routed to each expert.

    [L, E] float64; the norm is that of the output before its gate. SlimWise, Calibrate.
    """
    return stats.norm_LE.clone()


def reap_scores(stats: RoutingStats, gate: ScoringGate = ScoringGate.MODEL) -> Tensor:
    """Mean of gate x ||expert output||_2 over the tokens routed to each expert, [L, E] float64.

    Experts that no token reached score 0 and are dropped first. SlimWise, Calibrate; REAP's
    saliency criterion.
    """
    model_gate = gate is ScoringGate.MODEL
    sums_LE = stats.gate_norm_LE if model_gate else stats.softmax_gate_norm_LE
    return _ratio(sums_LE, stats.tokens_LE)


def frequency_scores(stats: RoutingStats) -> Tensor:
    """Share of a layer's routed (token, slot) pairs that each expert takes, [L, E] float64.

    A baseline that the REAP publication compares with.
    """
    return _ratio(stats.tokens_LE, stats.tokens_LE.sum(dim=1, keepdim=True))


def _ratio(sums_LE: Tensor, counts_LE: Tensor) -> Tensor:
    """Sums over counts, 0 where nothing was counted; weighted counts may be below one."""
    return (sums_LE / counts_LE).where(counts_LE > 0, 0.0)
