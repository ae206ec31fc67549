"""Legend: T tokens, P pools, D hidden width."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from slimwise_vllm.operators import define_operators
from slimwise_vllm.pool_modules import PoolActivation, PoolGatedNorm, PoolNorm, PoolScaledRouter

NUM_POOLS, MAX_TOKENS, WIDTH, HEAD = 3, 64, 16, 8
EPS = 1e-6


class Router(nn.Module):
    """Named and laid out like Gemma 4's in vLLM."""

    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH, elementwise_affine=False)
        self.root_size = torch.tensor(0.25)

    def proj(self, scaled_TD):
        return scaled_TD.cumsum(1), None


class Layer(nn.Module):
    """Every kind of module that is put into a model, in a row."""

    def __init__(self):
        super().__init__()
        define_operators()
        pool_T = torch.randint(NUM_POOLS, (MAX_TOKENS,), dtype=torch.int32)
        kept_PB = torch.tensor([[True, False], [True, False], [True, True]])
        gated = SimpleNamespace(eps=EPS, activation="silu")
        self.norm = PoolNorm(torch.randn(NUM_POOLS, WIDTH), pool_T, EPS)
        self.head_norm = PoolNorm(torch.randn(NUM_POOLS, HEAD), pool_T, EPS)
        self.gated_norm = PoolGatedNorm(torch.randn(NUM_POOLS, HEAD), pool_T, gated, 2)
        self.act = PoolActivation(nn.SiLU(), kept_PB, pool_T)
        self.router = PoolScaledRouter(Router(), torch.randn(NUM_POOLS, WIDTH), pool_T)

    def forward(self, hidden_TD, residual_TD):
        hidden_TD, residual_TD = self.norm(self.norm(hidden_TD), residual_TD)
        heads_THD = self.head_norm(hidden_TD.unflatten(1, (2, HEAD)))
        in_a_row = self.gated_norm(heads_THD.flatten(0, 1), residual_TD.reshape(-1, HEAD))
        by_token = self.gated_norm(heads_THD, residual_TD.unflatten(1, (2, HEAD)))
        torch._assert(in_a_row.shape[0] == 2 * by_token.shape[0], "heads of tokens in a row")
        hidden_TD = in_a_row.reshape(hidden_TD.shape) + by_token.flatten(1)
        return self.router(self.act(hidden_TD)), residual_TD


@pytest.fixture
def compiling(monkeypatch):
    """Engines of other tests run without the compiler."""
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "0")
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


@torch.no_grad()
def test_one_compiled_graph_serves_every_number_of_tokens(compiling):
    layer = Layer()
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for num_tokens in (3, 17, MAX_TOKENS, 30):
        given = torch.randn(num_tokens, WIDTH), torch.randn(num_tokens, WIDTH)
        torch.testing.assert_close(compiled(*given), layer(*given))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@torch.no_grad()
def test_graphs_read_the_pools_of_the_step_that_they_run_in(compiling):
    layer = Layer()
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    given = torch.randn(5, WIDTH), torch.randn(5, WIDTH)
    before = compiled(*given)[0]
    layer.norm.pool_T.copy_((layer.norm.pool_T + 1) % NUM_POOLS)
    after = compiled(*given)[0]
    torch.testing.assert_close(after, layer(*given)[0])
    assert not torch.allclose(before, after)
