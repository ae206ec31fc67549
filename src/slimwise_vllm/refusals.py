"""Everything that the plugin refuses to run on, by name, before it could serve a wrong answer."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from slimwise.artifacts.checkpoint_digest import checkpoint_digest
from slimwise.errors import BackboneError, ConfigError, KeepSetError
from slimwise_vllm.moe_layers import MoELayer
from slimwise_vllm.pools import Pools
from slimwise_vllm.settings import PluginSettings

TESTED_VERSIONS = ("0.26.0", "0.32.0")
_ROUTERS = ("FusedTopKRouter", "CustomRoutingRouter", "GroupedTopKRouter", "CPURouter")
_PROBE_ROWS = 4
_SIZES = (
    "pipeline_parallel_size",
    "data_parallel_size",
    "prefill_context_parallel_size",
    "decode_context_parallel_size",
)
_CONNECTORS = (
    "NixlConnector",
    "NixlPullConnector",
    "NixlPushConnector",
    "MooncakeConnector",
    "MooncakeStoreConnector",
    "MoRIIOConnector",
    "OffloadingConnector",
    "SimpleCPUOffloadConnector",
    "DecodeBenchConnector",
)
"""Of vLLM, those that find KV by its request or by vLLM's block hashes, which name the pools."""


def refuse_version(version: str, settings: PluginSettings) -> None:
    """ConfigError unless vLLM's version was tested or the settings allow any."""
    if settings.allow_unknown_version or version.partition("+")[0] in TESTED_VERSIONS:
        return
    raise ConfigError(
        f"vLLM {version} is not one of {', '.join(TESTED_VERSIONS)}, with which the plugin was "
        "tested. Install one of them, or set slimwise.allow_unknown_version to try."
    )


def refuse_frontend() -> None:
    """ConfigError if requests would enter by a server that is not Python and loads no plugins."""
    from vllm import envs

    if envs.VLLM_USE_RUST_FRONTEND:
        raise ConfigError(
            "VLLM_USE_RUST_FRONTEND=1 cannot serve expert pools: the plugin would not see the "
            "requests. Unset it, so that vLLM's Python server takes them."
        )


def refuse_engine(vllm_config: Any, settings: PluginSettings) -> None:
    """ConfigError names the first feature under which rows of a step are not its tokens in order.

    So is pipeline parallelism, where no worker sees all the layers of a keep set, a KV connector
    that could take the KV of one pool for another's, and for trained pools LoRA, which puts its own
    modules in the place of those that would be hooked, and new weights, which do not fit them.
    """
    parallel = vllm_config.parallel_config
    for option in _SIZES:
        size = getattr(parallel, option)
        if size > 1:
            raise ConfigError(
                f"--{option.replace('_', '-')}={size} cannot serve expert pools, for which the "
                "limit is 1. Leave it out."
            )
    refused = {
        "dual-batch overlap (--enable-dbo, --ubatch-size)": parallel.use_ubatching,
        "sequence-parallel MoE (--all2all-backend)": parallel.use_sequence_parallel_moe,
        "--kv-sharing-fast-prefill": vllm_config.cache_config.kv_sharing_fast_prefill,
        "a pooling model (--runner pooling)": vllm_config.model_config.runner_type == "pooling",
        "LoRA (--enable-lora) beside trained tensors": (
            settings.has_trained and vllm_config.lora_config is not None
        ),
        "weight transfer (--weight-transfer-config) beside trained tensors": (
            settings.has_trained and vllm_config.weight_transfer_config is not None
        ),
    }
    for feature, is_on in refused.items():
        if is_on:
            raise ConfigError(f"{feature} cannot serve expert pools. Turn it off.")
    if vllm_config.kv_transfer_config is not None:
        _refuse_connector(vars(vllm_config.kv_transfer_config))


def _refuse_connector(connector: Mapping[str, Any]) -> None:
    """ConfigError if it may find the KV of one pool by the tokens of a request for another."""
    name, module = connector["kv_connector"], connector.get("kv_connector_module_path")
    if name == "MultiConnector" and not module:
        for child in connector["kv_connector_extra_config"]["connectors"]:
            _refuse_connector(child)
    elif name is not None and (module or name not in _CONNECTORS):
        raise ConfigError(
            f"KV connector {f'{module}.{name}' if module else name} is not known to tell the KV of "
            f"one pool from that of another, as do {', '.join(_CONNECTORS)}. Use one of these."
        )


def refuse_other_model(pools: Pools, vllm_config: Any, settings: PluginSettings) -> None:
    """KeepSetError if the keep sets were chosen for other experts or other weights.

    The digest needs the model's folder; for a name on a hub, turn the check off.
    """
    model = vllm_config.model_config
    num_experts = model.get_num_experts()
    if num_experts != pools.num_experts:
        raise KeepSetError(
            f"the keep sets are of a model with {pools.num_experts} experts a layer, {model.model} "
            f"has {num_experts}. Serve the model they were chosen for."
        )
    if not settings.check_model_digest:
        return
    folder = Path(model.model)
    if not folder.is_dir():
        raise KeepSetError(
            f"model {model.model!r} is not a folder, so its digest cannot be compared with that of "
            "the keep sets. Serve a local folder, or set slimwise.check_model_digest to false."
        )
    found = checkpoint_digest(folder)
    for pool in pools.pruned:
        if pool.backbone_digest != found:
            raise KeepSetError(
                f"pool {pool.name!r} was chosen for model {pool.backbone_digest[:12]}, but "
                f"{folder} has digest {found[:12]}. Serve the model it was chosen for, or set "
                "slimwise.check_model_digest to false for one trained from it."
            )


def refuse_router(layer: MoELayer, device: torch.device) -> None:
    """BackboneError names what lets a router choose experts other than by the largest logits."""
    router = layer.runner.router
    kind = type(router).__name__
    group = getattr(router, "num_expert_group", None) or 1
    refused = {
        f"a router of class {kind}": kind not in _ROUTERS,
        "a score correction bias": getattr(router, "e_score_correction_bias", None) is not None,
        "hash routing": getattr(router, "_hash_indices_table", None) is not None,
        f"top-k within {group} expert groups": group > 1,
        "a fused shared-expert gate": layer.runner._fse_fuse_gate,
    }
    for feature, is_on in refused.items():
        if is_on:
            raise BackboneError(
                f"{layer.name} has {feature}: masked logits would not keep its tokens on kept "
                "experts. This model can be served full, or as an exported checkpoint."
            )
    if getattr(router, "custom_routing_function", None) is not None:
        _probe_router(layer, device)


def _probe_router(layer: MoELayer, device: torch.device) -> None:
    """A custom routing function may do anything, so it must show that it follows the logits."""
    config = layer.runner.moe_config
    num_experts, top_k = config.num_logical_experts, config.experts_per_token
    hidden = torch.zeros(_PROBE_ROWS, config.hidden_dim, dtype=config.in_dtype, device=device)
    ranks = torch.randperm(num_experts, generator=torch.Generator().manual_seed(0)).to(device)
    # Below 0, where bfloat16 tells the largest apart however many there are.
    logits = (ranks - num_experts).to(config.in_dtype).expand(_PROBE_ROWS, -1) / num_experts
    _, ids = layer.runner.router._compute_routing(hidden, logits, None)
    expected = ranks.topk(top_k).indices
    if set(ids.flatten().tolist()) != set(expected.tolist()):
        raise BackboneError(
            f"the routing function of {layer.name} does not choose the {top_k} largest logits: "
            "masked logits would not keep its tokens on kept experts. This model can be served "
            "full, or as an exported checkpoint."
        )


def refuse_unobservable(layer: MoELayer) -> None:
    """ConfigError if the layer's kernel chooses experts itself and tells nobody."""
    if layer.runner.is_monolithic:
        raise ConfigError(
            f"{layer.name} runs a monolithic kernel, which does not report the experts it chooses. "
            "Remove slimwise.coverage_file and slimwise.check_routing, or pick another MoE backend."
        )
