from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.keep_set import KeepSet
from slimwise.errors import BackboneError, ConfigError, KeepSetError
from slimwise_vllm.moe_layers import MoELayer
from slimwise_vllm.pools import Pools, PrunedPool
from slimwise_vllm.refusals import (
    refuse_engine,
    refuse_other_model,
    refuse_router,
    refuse_unobservable,
    refuse_version,
)
from slimwise_vllm.settings import PluginSettings

PARALLEL = {
    "use_ubatching": False,
    "prefill_context_parallel_size": 1,
    "decode_context_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "data_parallel_size": 1,
    "use_sequence_parallel_moe": False,
}


def settings(**changes):
    return PluginSettings(pools={"half": PoolFiles(keep_set=Path("half.json"))}, **changes)


def engine(runner_type="generate", fast_prefill=False, transfer=None, **changes):
    return SimpleNamespace(
        parallel_config=SimpleNamespace(**(PARALLEL | changes)),
        cache_config=SimpleNamespace(kv_sharing_fast_prefill=fast_prefill),
        model_config=SimpleNamespace(runner_type=runner_type),
        kv_transfer_config=transfer and SimpleNamespace(**transfer),
        lora_config=None,
        weight_transfer_config=None,
    )


@pytest.mark.parametrize("version", ["0.26.0", "0.32.0", "0.32.0+cpu"])
def test_tested_versions_pass(version):
    refuse_version(version, settings())


def test_another_version_passes_only_if_allowed():
    with pytest.raises(ConfigError, match=r"vLLM 0\.33\.0 is not one of .*allow_unknown_version"):
        refuse_version("0.33.0", settings())
    refuse_version("0.33.0", settings(allow_unknown_version=True))


@pytest.mark.parametrize(
    ("changes", "feature"),
    [
        ({"use_ubatching": True}, "dual-batch overlap"),
        ({"prefill_context_parallel_size": 2}, "--prefill-context-parallel-size=2"),
        ({"decode_context_parallel_size": 2}, "--decode-context-parallel-size=2"),
        ({"pipeline_parallel_size": 2}, "--pipeline-parallel-size=2 .* limit is 1"),
        ({"data_parallel_size": 2}, "--data-parallel-size=2"),
        ({"use_sequence_parallel_moe": True}, "sequence-parallel MoE"),
        ({"fast_prefill": True}, "--kv-sharing-fast-prefill"),
        ({"runner_type": "pooling"}, "a pooling model"),
    ],
)
def test_unsupported_engines_are_refused_by_name(changes, feature):
    refuse_engine(engine(), settings())
    with pytest.raises(ConfigError, match=feature):
        refuse_engine(engine(**changes), settings())


def connector(name, module=None, **extra):
    return {
        "kv_connector": name,
        "kv_connector_module_path": module,
        "kv_connector_extra_config": extra,
    }


NIXL, LMCACHE = connector("NixlConnector"), connector("LMCacheConnectorV1")


@pytest.mark.parametrize(
    "safe",
    [
        NIXL,
        connector("OffloadingConnector"),
        connector("MultiConnector", connectors=[NIXL, {"kv_connector": "MooncakeStoreConnector"}]),
        connector(None),
    ],
)
def test_connectors_that_tell_pools_apart_pass(safe):
    refuse_engine(engine(transfer=safe), settings())


@pytest.mark.parametrize(
    ("unsafe", "name"),
    [
        (LMCACHE, "LMCacheConnectorV1"),
        (connector("ExampleConnector"), "ExampleConnector"),
        (connector("MultiConnector", connectors=[NIXL, LMCACHE]), "LMCacheConnectorV1"),
        (connector("NixlConnector", module="mine.nixl"), r"mine\.nixl\.NixlConnector"),
    ],
)
def test_connectors_that_find_kv_by_its_tokens_are_refused_by_name(unsafe, name):
    with pytest.raises(ConfigError, match=f"KV connector {name} .* NixlConnector, "):
        refuse_engine(engine(transfer=unsafe), settings())


@pytest.mark.parametrize(
    ("config", "feature"),
    [("lora_config", "LoRA"), ("weight_transfer_config", "weight transfer")],
)
def test_other_weights_are_refused_beside_trained_tensors_only(config, feature):
    files = PoolFiles(keep_set=Path("half.json"), trained=Path("kd"))
    asked = engine()
    setattr(asked, config, object())
    refuse_engine(asked, settings())
    with pytest.raises(ConfigError, match=f"{feature} .* beside trained tensors"):
        refuse_engine(asked, PluginSettings(pools={"kd": files}))


def pools(num_experts=16, digest="abc"):
    return Pools((PrunedPool("half", Path(), KeepSet(((0, 1),), num_experts, 2), digest),))


def model(folder):
    found = SimpleNamespace(model=str(folder), get_num_experts=lambda: 16)
    return SimpleNamespace(model_config=found)


def test_keep_sets_of_other_experts_are_refused(tmp_path):
    with pytest.raises(KeepSetError, match=r"with 8 experts a layer, .* has 16"):
        refuse_other_model(pools(num_experts=8), model(tmp_path), settings())


def test_keep_sets_of_other_weights_are_refused(tiny_backbone):
    folder = tiny_backbone("qwen3_moe").folder
    with pytest.raises(KeepSetError, match="'half' was chosen for model abc"):
        refuse_other_model(pools(), model(folder), settings())
    refuse_other_model(pools(), model(folder), settings(check_model_digest=False))


def test_a_model_on_a_hub_has_no_digest():
    with pytest.raises(KeepSetError, match="'some/name' is not a folder"):
        refuse_other_model(pools(), model("some/name"), settings())


class FusedTopKRouter:
    """Named like vLLM's, for the list of accepted classes."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


class CustomRoutingRouter(FusedTopKRouter):
    custom_routing_function = staticmethod(lambda: None)
    sign = 1
    top_k = 2

    def _compute_routing(self, hidden, logits, indices_type):
        return logits.topk(self.top_k).values, (logits * self.sign).topk(self.top_k).indices


class ZeroExpertRouter(FusedTopKRouter):
    pass


def layer(router, fused_gate=False, monolithic=False, num_experts=8, top_k=2):
    runner = SimpleNamespace(
        router=router,
        _fse_fuse_gate=fused_gate,
        is_monolithic=monolithic,
        moe_config=SimpleNamespace(
            num_logical_experts=num_experts,
            experts_per_token=top_k,
            hidden_dim=4,
            in_dtype=torch.bfloat16,
        ),
    )
    return MoELayer(0, "model.layers.0.mlp.experts", runner)


@pytest.mark.parametrize(
    ("refused", "feature"),
    [
        (layer(ZeroExpertRouter()), "class ZeroExpertRouter"),
        (layer(FusedTopKRouter(e_score_correction_bias=1)), "a score correction bias"),
        (layer(FusedTopKRouter(_hash_indices_table=1)), "hash routing"),
        (layer(FusedTopKRouter(num_expert_group=4)), "top-k within 4 expert groups"),
        (layer(FusedTopKRouter(), fused_gate=True), "a fused shared-expert gate"),
        (layer(CustomRoutingRouter(sign=-1)), "does not choose the 2 largest logits"),
    ],
)
def test_routers_that_could_leave_the_pool_are_refused_by_name(refused, feature):
    with pytest.raises(BackboneError, match=feature):
        refuse_router(refused, torch.device("cpu"))


def test_routers_that_follow_the_logits_pass():
    refuse_router(layer(FusedTopKRouter()), torch.device("cpu"))
    refuse_router(layer(CustomRoutingRouter(sign=1)), torch.device("cpu"))


def test_more_experts_than_bfloat16_has_whole_numbers_pass():
    router = CustomRoutingRouter(top_k=8)
    refuse_router(layer(router, num_experts=768, top_k=8), torch.device("cpu"))


def test_a_kernel_that_hides_its_choice_cannot_be_checked():
    refuse_unobservable(layer(FusedTopKRouter()))
    with pytest.raises(ConfigError, match="monolithic kernel"):
        refuse_unobservable(layer(FusedTopKRouter(), monolithic=True))
