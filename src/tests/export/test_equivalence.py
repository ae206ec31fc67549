"""A pruned checkpoint computes what the full model computes under the mask.

Legend: T tokens, E experts, K top-k, L MoE layers.
"""

from typing import Any

import pytest
import torch

from slimwise.backbones.base import ExpertStack
from slimwise.backbones.registry import inspect_checkpoint
from slimwise.core.keep_set import KeepSet
from slimwise.core.masking import masked_router_logits, router_bias, top_k_gates

KEPT = ((0, 1, 5, 6, 9, 15), (2, 3, 4, 7, 11, 12))
IDS = torch.arange(1, 49).reshape(2, 24)


def _load(folder, facts):
    loaded: Any = facts.auto_class.from_pretrained(folder, output_loading_info=True)
    model, report = loaded
    assert not report["missing_keys"]
    assert not report["mismatched_keys"]
    return model


def _logits(model):
    with torch.inference_mode():
        return model(input_ids=IDS, use_cache=False).logits


def _masked_logits(model, found, keep_set):
    bias_LE = router_bias(keep_set)

    def masked(layer):
        def route(_module, _inputs, output):
            logits_TE = found.backbone.router_logits(output)
            masked_TE = masked_router_logits(logits_TE, bias_LE[layer])
            if output is logits_TE:
                return masked_TE
            return masked_TE, *top_k_gates(masked_TE, found.shape.top_k, found.gate_rule)

        return route

    hooks = [
        modules.router.register_forward_hook(masked(layer))
        for layer, modules in enumerate(found.backbone.moe_modules(model.base_model))
    ]
    logits = _logits(model)
    for hook in hooks:
        hook.remove()
    return logits


def _twin_experts(folder, facts):
    """Make experts 2n and 2n + 1 equal, router rows and all: every choice between them is a tie."""
    model = _load(folder, facts)
    role = inspect_checkpoint(folder).backbone.tensor_role
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if isinstance(role(name), ExpertStack):
                parameter[1::2] = parameter[0::2]
    model.save_pretrained(folder)


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_pruned_equals_masked(tiny_checkpoint, export, kind, tiny_facts, fused, tied):
    folder = tiny_checkpoint(kind, fused=fused)
    if tied:
        _twin_experts(folder, tiny_facts)
    pruned = _load(export(folder), tiny_facts)
    full = _load(folder, tiny_facts)
    expected = _masked_logits(full, inspect_checkpoint(folder), KeepSet(KEPT, 16, top_k=4))
    assert (expected - _logits(full)).abs().max() > 1e-2
    # float32, two layers: gates are normalised over another number of zeros.
    torch.testing.assert_close(_logits(pruned), expected, rtol=2e-5, atol=2e-5)
