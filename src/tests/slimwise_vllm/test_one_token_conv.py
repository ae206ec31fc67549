"""The convolution of vLLM's CPU build, given one token as its gated-delta-net layers give it."""

import importlib

import pytest
import torch

from slimwise_vllm.one_token_conv import accept_one_token

WIDTH, CHANNELS, PROJECTED = 4, 64, 96


def convolved(module, tokens_TC: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs and the state left behind, from an empty state."""
    states = torch.zeros(2, WIDTH - 1, CHANNELS, dtype=torch.bfloat16).transpose(1, 2)
    weight = torch.linspace(-1, 1, CHANNELS * WIDTH).view(CHANNELS, WIDTH).bfloat16()
    output = module._causal_conv1d_fwd_cpu(
        x=tokens_TC.transpose(0, 1),
        weight=weight,
        bias=None,
        conv_states=states,
        query_start_loc=torch.tensor([0, len(tokens_TC)], dtype=torch.int32),
        cache_indices=torch.tensor([1], dtype=torch.int32),
        has_initial_state=torch.tensor([False]),
        silu_activation=True,
        is_weight_packed=False,
    )
    return output.transpose(0, 1), states[1]


@pytest.mark.skipif(
    not torch.cpu._is_avx512_bf16_supported(), reason="vLLM uses another convolution here"
)
def test_one_token_of_a_wider_projection_is_convolved_as_one_that_stands_alone():
    pytest.importorskip("vllm._C")
    module = importlib.import_module("vllm.model_executor.layers.mamba.ops.cpu.gdn_attention")
    accept_one_token()
    accept_one_token()
    projected = torch.linspace(-2, 2, PROJECTED).bfloat16()[None]
    sliced = projected[:, :CHANNELS].contiguous()
    assert sliced.stride() == (PROJECTED, 1)
    outputs, state = convolved(module, sliced)
    expected_outputs, expected_state = convolved(module, sliced.reshape(-1).clone()[None])
    assert outputs.equal(expected_outputs)
    assert state.equal(expected_state)
