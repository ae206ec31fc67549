import sys

import torch

from slimwise.backbones.linear_attention import use_blocked_delta_rule

_FUNCTION = "torch_chunk_gated_delta_rule"


def test_logits_and_gradients_stay_those_of_the_library(tiny_model, monkeypatch):
    outcomes = []
    for is_ours in (False, True):
        model = tiny_model("hybrid")
        library = sys.modules[type(model).__module__]
        monkeypatch.setattr(library, _FUNCTION, getattr(library, _FUNCTION))
        if is_ours:
            assert use_blocked_delta_rule(model) > 0
            assert getattr(library, _FUNCTION).__module__.startswith("slimwise")
        ids = torch.randint(1, 64, (2, 150), generator=torch.Generator().manual_seed(0))
        logits = model(ids).logits
        logits.square().mean().backward()
        gradient = model.get_input_embeddings().weight.grad
        outcomes.append((logits.detach(), gradient))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=1e-4, atol=1e-5)


def test_models_without_linear_attention_are_left_alone(tiny_model):
    assert use_blocked_delta_rule(tiny_model("parallel")) == 0
