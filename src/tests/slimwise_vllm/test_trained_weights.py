"""What cannot be served by token is refused by name, with modules that stand in for vLLM's."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from slimwise.artifacts.trained_tensors import write_trained_tensors
from slimwise.core.keep_set import KeepSet
from slimwise.errors import BackboneError, CheckpointError
from slimwise_vllm.moe_layers import MoELayer
from slimwise_vllm.pool_modules import PoolActivation, PoolNorm
from slimwise_vllm.pools import PrunedPool
from slimwise_vllm.trained_weights import TrainedModel, install_trained

HIDDEN, WIDTH, NUM_EXPERTS = 4, 6, 8
LAYER = "model.layers.0"


class UnquantizedLinearMethod:
    def process_weights_after_loading(self, layer):
        pass


class Fp8LinearMethod(UnquantizedLinearMethod):
    pass


class Linear(nn.Module):
    def __init__(self, rows, columns, method=UnquantizedLinearMethod, tp_size=1, tp_rank=0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(rows, columns))
        self.quant_method = method()
        self.params_dtype = torch.float32
        self.input_size, self.output_sizes = columns, [rows // 2 * tp_size] * 2
        self.tp_size, self.tp_rank = tp_size, tp_rank


class RMSNorm(nn.Module):
    variance_size_override = None
    variance_epsilon = 1e-6

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(HIDDEN))
        self.has_weight = True


class ScaledNorm(RMSNorm):
    pass


def model(method=UnquantizedLinearMethod, norm=RMSNorm, tp_size=1, tp_rank=0) -> Any:
    sharded = {"method": method, "tp_size": tp_size, "tp_rank": tp_rank}
    expert = nn.Module()
    expert.gate_up_proj = Linear(2 * WIDTH // tp_size, HIDDEN, **sharded)
    expert.down_proj = Linear(HIDDEN, WIDTH // tp_size, **sharded)
    expert.act_fn = nn.SiLU()
    layer = nn.Module()
    layer.mlp = nn.Module()
    layer.mlp.gate = Linear(NUM_EXPERTS, HIDDEN)
    layer.mlp.shared_expert = expert
    layer.input_layernorm = norm()
    served = nn.Module()
    served.model = nn.Module()
    served.model.layers = nn.ModuleList([layer])
    return served


def trained(seed=0):
    """Trained tensors under the names of a wrapper's checkpoint; own halves do not differ."""
    own, drawn = (torch.Generator().manual_seed(number) for number in (0, seed + 1))

    def both(*shape, dim=0):
        halves = [torch.randn(shape, generator=generator) for generator in (own, drawn)]
        return torch.cat(halves, dim).contiguous()

    expert = f"{LAYER}.mlp.shared_expert"
    return {
        f"{LAYER}.mlp.gate.weight": torch.randn(NUM_EXPERTS, HIDDEN, generator=drawn),
        f"{LAYER}.input_layernorm.weight": torch.randn(HIDDEN, generator=drawn),
        f"{expert}.gate_proj.weight": both(WIDTH, HIDDEN),
        f"{expert}.up_proj.weight": both(WIDTH, HIDDEN),
        f"{expert}.down_proj.weight": both(HIDDEN, WIDTH, dim=1),
    }


@pytest.fixture
def install(tmp_path):
    """A function that hooks a model for a plain pool and one pool for each set of tensors."""

    def installed(served, *sets):
        keep_set = KeepSet(((0, 1),), NUM_EXPERTS, 2)
        pools = [PrunedPool("half", Path(), keep_set, "")]
        for number, tensors in enumerate(sets):
            folder = tmp_path / f"kd{number}"
            folder.mkdir(exist_ok=True)
            write_trained_tensors(folder, tensors)
            pools.append(PrunedPool(folder.name, Path(), keep_set, "", folder))
        layers = [MoELayer(0, f"{LAYER}.mlp.experts", SimpleNamespace())]
        pool_T = torch.zeros(4, dtype=torch.int32)
        return install_trained(TrainedModel(served, layers, tmp_path), pools, pool_T)

    return installed


def test_without_trained_pools_nothing_is_hooked(install):
    served = model()
    before = dict(served.named_modules())
    assert install(served) is None
    assert dict(served.named_modules()) == before


def test_blocks_and_tables_lie_in_the_order_of_pools(install):
    served, sets = model(), [trained(1), trained(2)]
    layer = served.model.layers[0]
    own_gate, own_norm = layer.mlp.gate.weight.data, layer.input_layernorm.weight.data
    block_P = install(served, *sets)
    assert block_P.tolist() == [0, 0, 1, 2]
    rows = [tensors[f"{LAYER}.mlp.gate.weight"] for tensors in sets]
    assert torch.equal(layer.mlp.gate.weight, torch.cat([own_gate, *rows]))
    norms = [tensors[f"{LAYER}.input_layernorm.weight"] for tensors in sets]
    assert isinstance(layer.input_layernorm, PoolNorm)
    assert torch.equal(layer.input_layernorm.weight_PD, torch.stack([own_norm, own_norm, *norms]))
    assert isinstance(layer.mlp.shared_expert.act_fn, PoolActivation)
    assert layer.mlp.shared_expert.act_fn.kept_PB.tolist() == [
        [True, False, False],
        [True, False, False],
        [True, True, False],
        [True, False, True],
    ]


def test_the_shards_of_all_ranks_sum_to_the_whole_shared_expert(install):
    hidden_TD, tensors = torch.randn(3, HIDDEN), trained(1)
    gate, up, down = (
        tensors[f"{LAYER}.mlp.shared_expert.{name}_proj.weight"] for name in ("gate", "up", "down")
    )
    expected = (nn.functional.silu(hidden_TD @ gate.T) * (hidden_TD @ up.T)) @ down.T
    total = torch.zeros_like(expected)
    for rank in range(2):
        served = model(tp_size=2, tp_rank=rank)
        install(served, tensors)
        expert = served.model.layers[0].mlp.shared_expert
        gates, ups = (hidden_TD @ expert.gate_up_proj.weight.T).chunk(2, dim=1)
        total += (nn.functional.silu(gates) * ups) @ expert.down_proj.weight.T
    torch.testing.assert_close(total, expected)


def changed(name, value=None):
    """Trained tensors of which one is another, or is not there."""
    tensors = trained()
    if value is None:
        return {key: tensor for key, tensor in tensors.items() if not key.endswith(name)}
    return tensors | {f"{LAYER}.{name}": value}


@pytest.mark.parametrize(
    ("served", "sets", "fault"),
    [
        (model(), [changed("self_attn.o_proj.weight", torch.ones(2))], "o_proj.weight was trained"),
        (model(), [changed("mlp.gate.weight", torch.ones(2, 2))], r"shape \(2, 2\), .* \(8, 4\)"),
        (model(), [changed("input_layernorm.weight", torch.ones(3))], r"layernorm.*shape \(3,\)"),
        (model(), [changed("other_norm.weight", torch.ones(4))], "does not have"),
        (model(norm=ScaledNorm), [trained()], "of a ScaledNorm that the plugin does not know"),
        (model(), [trained(), changed("input_layernorm.weight")], "'kd0' and 'kd1' differ in"),
        (model(), [changed("up_proj.weight")], r"no .*up_proj\.weight was trained"),
        (model(), [changed("mlp.gate_proj.weight", torch.ones(2))], "is no shared expert"),
    ],
)
def test_tensors_that_cannot_be_served_are_refused_by_name(install, served, sets, fault):
    with pytest.raises(CheckpointError, match=fault):
        install(served, *sets)


def test_a_quantised_shared_expert_is_refused_by_name(install):
    with pytest.raises(BackboneError, match=r"gate_up_proj is quantised \(Fp8LinearMethod\)"):
        install(model(Fp8LinearMethod), trained())


def test_pools_of_different_shared_experts_are_refused(install):
    other = trained(2)
    other[f"{LAYER}.mlp.shared_expert.up_proj.weight"][0] += 1
    with pytest.raises(CheckpointError, match="were trained beside different shared experts"):
        install(model(), trained(1), other)
