"""What holds for every input, tried on many; the other files have numbers worked out by hand."""

import random
from itertools import accumulate, chain, pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from slimwise.core.kd_loss import distillation_loss, kl_divergence, teacher_targets
from slimwise.core.keep_set import KeepSet
from slimwise.core.masking import masked_router_logits, router_bias, top_k_gates
from slimwise.core.moe import GateActivation, GateRule
from slimwise.core.packing import packed
from slimwise.core.routing_stats import RoutingStats, mixed
from slimwise.core.scores import expert_scores
from slimwise.core.selection import select_keep_set, top_experts
from slimwise.core.shared_expert import SharedExpertWeights, concatenated
from slimwise.core.slicing import kept_byte_ranges
from slimwise.core.split_point import draw_split, num_scored
from slimwise.core.traffic import expected_distinct_experts
from slimwise.core.vocabulary import Criterion, Distillation
from slimwise.errors import KeepSetError

SEEDS = st.integers(0, 2**31)
SCORES = st.lists(st.integers(0, 9).map(float), min_size=4, max_size=16)
"""Few values: most lists have ties."""


def _drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _stats(seed: int) -> RoutingStats:
    return RoutingStats(*_drawn(seed, 6, 2, 5).abs())


@given(SEEDS, SEEDS, st.sampled_from(Criterion))
def test_scores_do_not_depend_on_how_tokens_were_shared_out(left, right, criterion):
    both = _stats(left) + _stats(right)
    swapped = _stats(right) + _stats(left)
    assert torch.equal(expert_scores(both, criterion), expert_scores(swapped, criterion))
    assert (expert_scores(both, criterion) >= 0).all()


@given(SEEDS, st.permutations(range(5)), st.sampled_from(Criterion))
def test_scores_follow_the_experts_when_these_change_places(seed, order, criterion):
    stats = _stats(seed)
    moved = RoutingStats(*(sums_LE[:, order] for sums_LE in vars(stats).values()))
    expected_LE = expert_scores(stats, criterion)[:, order]
    torch.testing.assert_close(expert_scores(moved, criterion), expected_LE)


@given(SEEDS, SEEDS, st.floats(0, 8), st.floats(0, 8))
def test_a_mixture_is_linear_in_its_weights(left, right, first, second):
    components = {"a": _stats(left), "b": _stats(right)}
    total = mixed(components, {"a": first, "b": second})
    expected_LE = components["a"].norm_LE * first + components["b"].norm_LE * second
    torch.testing.assert_close(total.norm_LE, expected_LE)


@given(SCORES, st.data())
def test_fewer_experts_are_a_part_of_more(scores_E, data):
    few = data.draw(st.integers(1, len(scores_E)))
    more = data.draw(st.integers(few, len(scores_E)))
    kept = top_experts(scores_E, few)
    assert set(kept) <= set(top_experts(scores_E, more))
    dropped = set(range(len(scores_E))) - set(kept)
    assert all((-scores_E[k], k) < (-scores_E[d], d) for k in kept for d in dropped)


@given(SCORES, st.integers(1, 4))
def test_only_the_order_of_scores_matters(scores_E, num_kept):
    rescaled_E = [3 * score**2 + 1 for score in scores_E]
    assert top_experts(scores_E, num_kept) == top_experts(rescaled_E, num_kept)


@given(st.lists(SCORES.filter(lambda scores: len(scores) >= 8), min_size=1, max_size=3), SEEDS)
def test_a_selected_keep_set_is_valid_and_masks_as_many(layers, seed):
    layers = [scores[:8] for scores in layers]
    keep_set = select_keep_set(layers, 3, top_k=2, backbone="eight")
    assert keep_set.num_kept_per_layer == (3,) * len(layers)
    bias_LE = router_bias(keep_set)
    assert (bias_LE == 0).sum(dim=1).tolist() == [3] * len(layers)
    masked_TE = masked_router_logits(_drawn(seed, 5, 8).float(), bias_LE[0])
    _, ids_TK = top_k_gates(masked_TE, 2, GateRule(GateActivation.SOFTMAX, renormalised=True))
    assert set(ids_TK.flatten().tolist()) <= set(keep_set.kept[0])


@given(st.lists(st.lists(st.integers(-2, 6), max_size=6), max_size=3), st.integers(1, 4))
def test_a_keep_set_is_valid_or_refused(kept, top_k):
    layers = tuple(map(tuple, kept))
    is_valid = bool(kept) and all(
        list(ids) == sorted(set(ids)) and set(ids) <= set(range(5)) and len(ids) >= top_k
        for ids in kept
    )
    if is_valid:
        assert KeepSet(layers, 5, top_k).num_layers == len(kept)
    else:
        with pytest.raises(KeepSetError):
            KeepSet(layers, 5, top_k)


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.sampled_from([1, 2, 4]),
    st.data(),
)
def test_ranges_hold_the_bytes_of_the_kept_slices(shape, item_bytes, data):
    dim = data.draw(st.integers(0, len(shape) - 1))
    kept = sorted(data.draw(st.sets(st.integers(0, shape[dim] - 1), min_size=1)))
    whole = torch.arange(torch.Size(shape).numel() * item_bytes).reshape(*shape, item_bytes)
    ranges = list(kept_byte_ranges(shape, whole.numel(), kept, dim))
    found = [byte for begin, end in ranges for byte in range(begin, end)]
    assert found == whole.index_select(dim, torch.tensor(kept)).flatten().tolist()
    assert all(end <= begin for (_, end), (begin, _) in pairwise(ranges))


@given(st.lists(st.lists(st.integers(0, 99), max_size=9), max_size=12), st.integers(1, 12))
def test_packed_sequences_are_full_and_begin_with_a_document(documents, sequence_tokens):
    sequences = list(packed(documents, sequence_tokens))
    filled = [document for document in documents if document]
    starts = accumulate(map(len, sequences), initial=0)
    for start, members in zip(starts, sequences, strict=False):
        assert len(list(chain(*members))) == sequence_tokens
        whole = filled[start : start + len(members)]
        assert members[:-1] == whole[:-1]
        assert members[-1] == whole[-1][: len(members[-1])]
    used = sum(map(len, sequences))
    assert sum(map(len, filled[used:])) < sequence_tokens


@given(st.integers(1, 40), SEEDS)
def test_split_points_are_positions_and_leave_the_rest_to_the_student(num_tokens, seed):
    split = draw_split(Distillation.UNIFORM, num_tokens, random.Random(seed))
    assert 0 <= split < num_tokens
    assert num_scored(split, num_tokens) == len(range(split, num_tokens - 1))
    assert draw_split(Distillation.ZERO, num_tokens, random.Random(seed)) == 0


@given(SEEDS, SEEDS, st.integers(1, 12), st.floats(-50, 50), st.floats(0.1, 20))
def test_the_divergence_is_at_most_the_full_one_and_blind_to_shifts(
    teacher, student, num_top, shift, scale
):
    teacher_TV, student_TV = (_drawn(seed, 3, 12) * scale for seed in (teacher, student))
    targets = teacher_targets(teacher_TV, num_top)
    divergence_T = kl_divergence(targets, student_TV)
    full_T = kl_divergence(teacher_targets(teacher_TV, 12), student_TV)
    assert (divergence_T >= -1e-5).all()
    assert (divergence_T <= full_T + 1e-4 * scale).all()
    torch.testing.assert_close(
        kl_divergence(targets, student_TV + shift), divergence_T, rtol=1e-3, atol=1e-3
    )
    assert kl_divergence(targets, teacher_TV).abs().max() < 1e-4


@given(SEEDS, st.integers(1, 12), st.floats(0, 1), st.integers(0, 6))
def test_the_loss_of_a_sequence_is_the_sum_over_its_parts(seed, num_top, alpha, cut):
    logits_TV, labels_T = _drawn(seed, 6, 12), torch.arange(6)
    targets = teacher_targets(_drawn(seed + 1, 6, 12), num_top)
    loss, divergence = distillation_loss(logits_TV, labels_T, targets, alpha)
    parts = [
        distillation_loss(logits_TV[a:b], labels_T[a:b], targets.part(a, b), alpha)
        for a, b in ((0, cut), (cut, 6))
    ]
    torch.testing.assert_close(sum(part for part, _ in parts), loss)
    torch.testing.assert_close(sum(part for _, part in parts), divergence)


def _computed(expert: SharedExpertWeights, hidden_TD: Tensor) -> Tensor:
    gated_TF = torch.nn.functional.silu(hidden_TD @ expert.gate_FD.T) * (hidden_TD @ expert.up_FD.T)
    return gated_TF @ expert.down_DF.T


@given(SEEDS, st.integers(1, 5), st.integers(1, 7), st.integers(1, 7))
def test_a_merged_expert_computes_the_sum_whatever_the_widths(seed, hidden, first, second):
    experts = [
        SharedExpertWeights(
            _drawn(seed, width, hidden),
            _drawn(seed + 1, width, hidden),
            _drawn(seed, hidden, width),
        )
        for width in (first, second)
    ]
    hidden_TD = _drawn(seed + 3, 4, hidden)
    expected_TD = sum(_computed(expert, hidden_TD) for expert in experts)
    torch.testing.assert_close(_computed(concatenated(*experts), hidden_TD), expected_TD)


@settings(max_examples=50)
@given(st.integers(1, 300), st.integers(1, 8), st.floats(1, 1000))
def test_a_step_reads_at_least_one_tokens_experts_and_at_most_all(num_experts, top_k, batch):
    top_k = min(top_k, num_experts)
    read = expected_distinct_experts(num_experts, top_k, batch)
    assert top_k - 1e-6 <= read <= num_experts
    assert read <= expected_distinct_experts(num_experts, top_k, batch + 1)
