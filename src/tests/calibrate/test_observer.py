"""Legend: T tokens, E experts, L MoE layers, K top-k, D hidden."""

import pytest
import torch

from slimwise.backbones.registry import backbone_for
from slimwise.calibrate.batches import first_batch
from slimwise.calibrate.observer import observed
from slimwise.core.moe import GateActivation, GateRule
from slimwise.core.routing_stats import RoutingStats
from slimwise.core.scores import expert_scores
from slimwise.core.selection import select_keep_set
from slimwise.core.vocabulary import Criterion
from slimwise.errors import BackboneError

SUMS = tuple(RoutingStats.__dataclass_fields__)
SOFTMAX = GateRule(GateActivation.SOFTMAX, renormalised=True)


def _sequences(*lengths: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(1, 64, (n,), generator=generator).tolist() for n in lengths]


def _observe(model, sequences) -> RoutingStats:
    batch = first_batch(sequences, 10**6)
    with observed(model, backbone_for(model.config.model_type), SOFTMAX) as observer:
        return observer.observe(batch)


def _naive_stats(model, sequence) -> RoutingStats:
    """One token, one expert at a time, on inputs that hooks caught."""
    family = backbone_for(model.config.model_type)
    layers = family.moe_modules(model)
    stats = RoutingStats.zeros(len(layers), 16)
    logits, inputs = [], []
    hooks = [
        hook
        for layer in layers
        for hook in (
            layer.router.register_forward_hook(lambda *call: logits.append(call[-1])),
            layer.experts.register_forward_pre_hook(lambda *call: inputs.append(call[-1])),
        )
    ]
    with torch.inference_mode():
        model(torch.tensor([sequence]), use_cache=False)
        for layer, (output, (hidden_TD, ids_TK, gates_TK)) in enumerate(
            zip(logits, inputs, strict=True)
        ):
            softmax_TE = family.router_logits(output).softmax(dim=-1)
            for token, hidden_D in enumerate(hidden_TD):
                for expert, gate in zip(ids_TK[token].tolist(), gates_TK[token], strict=True):
                    norm = _expert_output(layers[layer].experts, expert, hidden_D).norm().item()
                    soft = softmax_TE[token, expert].item()
                    values = (1, gate.item(), norm, gate.item() * norm, soft, soft * norm)
                    for name, value in zip(SUMS, values, strict=True):
                        getattr(stats, name)[layer, expert] += value
    for hook in hooks:
        hook.remove()
    return stats


def _expert_output(experts, expert, hidden_D):
    left, right = (experts.gate_up_proj[expert] @ hidden_D).chunk(2)
    return experts.down_proj[expert] @ (experts.act_fn(left) * right)


def _assert_close(found: RoutingStats, expected: RoutingStats, rtol: float) -> None:
    assert torch.equal(found.tokens_LE, expected.tokens_LE)
    for name in SUMS:
        torch.testing.assert_close(
            getattr(found, name), getattr(expected, name), rtol=rtol, atol=rtol
        )


def test_equals_a_loop_over_tokens_and_experts(tiny_decoder, kind):
    model = tiny_decoder(kind)
    (sequence,) = _sequences(23)
    # float32 sums in another order.
    _assert_close(_observe(model, [sequence]), _naive_stats(model, sequence), rtol=1e-6)


def test_scores_equal_those_of_every_expert_on_every_token(tiny_decoder, kind):
    """The dense way to observe: outputs of all experts, of which gates of zero leave most out."""
    model = tiny_decoder(kind)
    (sequence,) = _sequences(19)
    family = backbone_for(model.config.model_type)
    layers = family.moe_modules(model)
    inputs = []
    hooks = [
        layer.experts.register_forward_pre_hook(lambda *call: inputs.append(call[-1]))
        for layer in layers
    ]
    with torch.inference_mode():
        model(torch.tensor([sequence]), use_cache=False)
        found = [
            _dense_sums(layer.experts, *call) for layer, call in zip(layers, inputs, strict=True)
        ]
    for hook in hooks:
        hook.remove()
    tokens_LE, gate_LE, norm_LE, gate_norm_LE = map(torch.stack, zip(*found, strict=True))
    dense = RoutingStats(tokens_LE, gate_LE, norm_LE, gate_norm_LE, gate_LE, gate_norm_LE)
    routed = _observe(model, [sequence])
    for criterion in Criterion:
        expected = expert_scores(dense, criterion)
        scores = expert_scores(routed, criterion)
        assert (scores >= 0).all()
        # float32 products of another shape.
        torch.testing.assert_close(scores, expected, rtol=2e-6, atol=2e-6)
        assert _keep_set(scores) == _keep_set(expected)


def _keep_set(scores_LE):
    return select_keep_set(scores_LE.tolist(), 8, top_k=4, backbone="tiny")


def _dense_sums(experts, hidden_TD, ids_TK, gates_TK):
    """Tokens, gates, norms and gated norms by expert, [E] each."""
    norm_TE = torch.stack(
        [
            torch.stack([_expert_output(experts, expert, hidden_D).norm() for expert in range(16)])
            for hidden_D in hidden_TD
        ]
    ).double()
    gate_TE = torch.zeros_like(norm_TE).scatter(1, ids_TK, gates_TK.double())
    routed_TE = torch.zeros_like(norm_TE).scatter(1, ids_TK, 1.0)
    summed = (routed_TE, gate_TE, routed_TE * norm_TE, gate_TE * norm_TE)
    return tuple(values_TE.sum(dim=0) for values_TE in summed)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("implementation", ["grouped_mm", "batched_mm"])
def test_the_model_computes_the_same_bits(tiny_decoder, kind, dtype, implementation):
    model = tiny_decoder(kind).to(dtype)
    model.set_experts_implementation(implementation)
    batch = first_batch(_sequences(17, 9), 100)
    inputs = {"input_ids": batch.ids_BS, "attention_mask": batch.mask_BS, "use_cache": False}
    seen = []
    with torch.inference_mode():
        expected = model(**inputs).last_hidden_state
        hook = model.register_forward_hook(lambda *call: seen.append(call[-1].last_hidden_state))
        with observed(model, backbone_for(model.config.model_type), SOFTMAX) as observer:
            observer.observe(batch)
        hook.remove()
        assert torch.equal(model(**inputs).last_hidden_state, expected)
    assert torch.equal(seen[0], expected)
    assert model.config._experts_implementation == implementation


def test_a_fallback_class_is_observed_too(tiny_decoder):
    model = tiny_decoder("plain")
    sequences = _sequences(11)
    expected = _observe(model, sequences)
    model.set_experts_implementation("eager")
    _assert_close(_observe(model, sequences), expected, rtol=1e-6)


def test_padding_never_counts(tiny_decoder, kind):
    model = tiny_decoder(kind)
    sequences = _sequences(30, 11, 3)
    padded = _observe(model, sequences)
    alone = [_observe(model, [sequence]) for sequence in sequences]
    # float32 rows of another batch; the union of shards is the sum of their statistics.
    _assert_close(padded, alone[0] + alone[1] + alone[2], rtol=2e-6)
    assert padded.tokens_LE.sum(dim=1).tolist() == [44 * 4, 44 * 4]


def test_layers_that_overflow_are_named(tiny_decoder):
    model = tiny_decoder("plain")
    with torch.no_grad():
        model.layers[1].mlp.experts.down_proj.fill_(torch.inf)
    with pytest.raises(BackboneError, match="MoE layer 1"):
        _observe(model, _sequences(5))
