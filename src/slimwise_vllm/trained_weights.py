"""Gives the modules of a loaded model the trained values of its pools.

Modules are found by the names that the tensors have in the checkpoint. Routers and shared experts
of all pools lie side by side in one weight, so that they take no launches of their own; of what
they compute, each token keeps the block of its pool.
Legend: T tokens, P pools, B blocks (the model's own first), E experts, D hidden, F expert width.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from slimwise.artifacts.trained_tensors import read_trained_tensors
from slimwise.artifacts.weight_files import read_weights
from slimwise.core.shared_expert import SharedExpertWeights
from slimwise.errors import BackboneError, CheckpointError
from slimwise_vllm.moe_layers import MoELayer
from slimwise_vllm.pool_modules import PoolActivation, PoolGatedNorm, PoolNorm, PoolScaledRouter
from slimwise_vllm.pools import PrunedPool
from slimwise_vllm.router_hook import scale_choices

_WRAPPERS = re.compile(r"^(?:model\.|language_model\.)+")
_PROJECTIONS = ("gate_proj", "up_proj", "down_proj")
_FUSED_NORMS = ("use_fused_qk_norm_rope_gate", "enable_fused_gdn_spec_decode")
"""Flags of vLLM's attention layers, with which kernels read the weights of norms themselves."""


@dataclass(frozen=True)
class TrainedModel:
    """A model that is being loaded: its decoder, its MoE layers, and its checkpoint's folder."""

    model: nn.Module
    layers: Sequence[MoELayer]
    folder: Path

    @property
    def decoder(self) -> nn.Module:
        """The module whose `layers` the decoder layers are."""
        path = self.layers[0].name.partition("layers.")[0]
        return self.model.get_submodule(path.rstrip("."))


@dataclass(frozen=True)
class _Values:
    """The pools' trained tensors by their names below the decoder, and how they become tables."""

    loaded: TrainedModel
    tensors: Mapping[str, Mapping[str, Tensor]]
    stored_names: Mapping[str, str]
    block_P: Tensor
    pool_T: Tensor

    def module(self, path: str) -> Any:
        """The decoder's module of that path; CheckpointError if there is none."""
        try:
            return self.loaded.decoder.get_submodule(path)
        except AttributeError as failure:
            raise CheckpointError(
                f"tensors were trained for {path}, which the served model does not have (or has "
                "fused into another). Serve the model they were trained beside."
            ) from failure

    def trained(self, name: str, shape: Sequence[int], like: Tensor) -> list[Tensor]:
        """Each trained pool's tensor of that name; CheckpointError if its shape is another."""
        if any(name not in tensors for tensors in self.tensors.values()):
            raise CheckpointError(f"no {name} was trained, but its neighbours were. Distil again.")
        for pool, tensors in self.tensors.items():
            if tensors[name].shape != torch.Size(shape):
                raise CheckpointError(
                    f"{name} of pool {pool!r} has shape {tuple(tensors[name].shape)}, the served "
                    f"model wants {tuple(shape)}. Serve the model it was trained beside."
                )
        return [tensors[name].to(like) for tensors in self.tensors.values()]

    def blocks(self, name: str, own: Tensor) -> list[Tensor]:
        """The model's own tensor, then each trained pool's, on its device and in its type."""
        return [own, *self.trained(name, own.shape, own)]

    def table(self, name: str, own: Tensor) -> Tensor:
        """A row for every pool of a parameter of the model."""
        return torch.stack(self.blocks(name, own.data))[self.block_P]


def install_trained(
    loaded: TrainedModel, pools: Sequence[PrunedPool], pool_T: Tensor
) -> Tensor | None:
    """Hook all modules that the pools' trained tensors are for; the block of each pool, [P] int32.

    None if no pool has any. CheckpointError or BackboneError names what cannot be served.
    SlimWise, What, item 3.
    """
    tensors = {
        pool.name: read_trained_tensors(pool.trained) for pool in pools if pool.trained is not None
    }
    if not tensors:
        return None
    blocks = {name: block for block, name in enumerate(tensors, 1)}
    block_of_pool = [0, *(blocks.get(pool.name, 0) for pool in pools)]
    block_P = torch.tensor(block_of_pool, dtype=torch.int32, device=pool_T.device)
    stored_names = {_WRAPPERS.sub("", name): name for name in _common_names(tensors)}
    shortened = {
        pool: {short: stored[name] for short, name in stored_names.items()}
        for pool, stored in tensors.items()
    }
    values = _Values(loaded, shortened, stored_names, block_P, pool_T)
    for install, path in _parts(stored_names):
        install(values, path)
    return block_P


def _common_names(tensors: Mapping[str, Mapping[str, Tensor]]) -> set[str]:
    (first, names), *others = [(pool, set(stored)) for pool, stored in tensors.items()]
    for other, found in others:
        for name in sorted(names ^ found):
            raise CheckpointError(
                f"pools {first!r} and {other!r} differ in {name}, which was trained for one only. "
                "Distil them by the same version."
            )
    return names


Install = Callable[[_Values, str], None]


def _parts(names: Mapping[str, str]) -> list[tuple[Install, str]]:
    """What to do for the tensors of these names, each module once, in the order of patterns."""
    parts: dict[tuple[Install, str], None] = {}
    unknown = set(names)
    for pattern, install in _PATTERNS:
        matches = {name: match for name in sorted(unknown) if (match := pattern.fullmatch(name))}
        parts |= dict.fromkeys((install, match[1]) for match in matches.values())
        unknown -= matches.keys()
    for name in sorted(unknown):
        raise CheckpointError(
            f"{names[name]} was trained, which the plugin cannot serve for some tokens only. "
            "Export the decoder and serve its checkpoint."
        )
    return list(parts)


def _add_router_rows(values: _Values, path: str) -> None:
    layer = values.module(path)
    own_ED = _own_weight(values, path, layer)
    _set_weight(layer, torch.cat(values.blocks(f"{path}.weight", own_ED)), path)


def _scale_router_input(values: _Values, path: str) -> None:
    router = values.module(path)
    scale_PD = values.table(f"{path}.scale", router.scale)
    _replace(values.loaded.model, router, PoolScaledRouter(router, scale_PD, values.pool_T))


def _scale_gates(values: _Values, path: str) -> None:
    """The model's own factor becomes one, and the gates are multiplied where they are final."""
    name = f"{path}.router.per_expert_scale"
    layer = next(layer for layer in values.loaded.layers if f"{path}." in layer.name)
    if layer.runner.is_monolithic:
        raise BackboneError(
            f"{layer.name} runs a monolithic kernel, which makes its gates itself, so {name} "
            "cannot differ by token. Pick another MoE backend."
        )
    for module in values.module(path).modules():
        own_E = vars(module)["_parameters"].get("per_expert_scale")
        if own_E is not None:
            scale_choices(layer, values.table(name, own_E), values.pool_T)
            own_E.data = torch.ones_like(own_E)


def _widen_shared_expert(values: _Values, path: str) -> None:
    expert = values.module(path)
    if not hasattr(expert, "gate_up_proj"):
        raise CheckpointError(
            f"{path} was trained, but is no shared expert in the served model. Export the decoder "
            "and serve its checkpoint."
        )
    (first, second), *others = _shards(values, path, expert.gate_up_proj)
    for own, _ in others:
        if not all(map(torch.equal, _projections(own), _projections(first))):
            raise CheckpointError(
                f"the pools {', '.join(values.tensors)} were trained beside different shared "
                f"experts ({path}). Serve decoders of one model."
            )
    experts = [first, second, *(trained for _, trained in others)]
    gates, ups, downs = zip(*map(_projections, experts), strict=True)
    _set_weight(expert.gate_up_proj, torch.cat([*gates, *ups]), f"{path}.gate_up_proj")
    _set_weight(expert.down_proj, torch.cat(downs, dim=1), f"{path}.down_proj")
    kept_BB = torch.eye(len(experts), dtype=torch.bool, device=values.pool_T.device)
    kept_BB[:, 0] = True
    expert.act_fn = PoolActivation(expert.act_fn, kept_BB[values.block_P], values.pool_T)


def _shards(
    values: _Values, path: str, layer: Any
) -> list[tuple[SharedExpertWeights, SharedExpertWeights]]:
    """For each trained pool, this rank's part of the model's own shared expert and of its own."""
    width, hidden = layer.output_sizes[0], layer.input_size
    like = torch.empty(0, dtype=layer.params_dtype, device=values.pool_T.device)
    shapes = (2 * width, hidden), (2 * width, hidden), (hidden, 2 * width)
    trained = [
        values.trained(f"{path}.{projection}.weight", shape, like)
        for projection, shape in zip(_PROJECTIONS, shapes, strict=True)
    ]
    size = width // layer.tp_size
    own, second = (
        slice(begin + layer.tp_rank * size, begin + (layer.tp_rank + 1) * size)
        for begin in (0, width)
    )
    return [
        (
            SharedExpertWeights(gate_FD[own], up_FD[own], down_DF[:, own]),
            SharedExpertWeights(gate_FD[second], up_FD[second], down_DF[:, second]),
        )
        for gate_FD, up_FD, down_DF in zip(*trained, strict=True)
    ]


def _projections(expert: SharedExpertWeights) -> tuple[Tensor, Tensor, Tensor]:
    return expert.gate_FD, expert.up_FD, expert.down_DF


def _replace_norm(values: _Values, path: str) -> None:
    norm, name = values.module(path), f"{path}.weight"
    match type(norm).__name__:
        case "RMSNorm" if norm.variance_size_override is None and norm.has_weight:
            table_PD = values.table(name, norm.weight)
            by_pool: nn.Module = PoolNorm(table_PD, values.pool_T, norm.variance_epsilon)
        case "GemmaRMSNorm":
            table_PD = values.table(name, norm.weight).float() + 1.0
            by_pool = PoolNorm(table_PD, values.pool_T, norm.variance_epsilon)
        case "RMSNormGated" if norm.group_size is None and norm.norm_before_gate:
            owner = values.module(path.rpartition(".")[0])
            table_PD = values.table(name, norm.weight)
            num_heads = owner.num_v_heads // owner.tp_size
            by_pool = PoolGatedNorm(table_PD, values.pool_T, norm, num_heads)
        case kind:
            raise CheckpointError(
                f"{values.stored_names[name]} was trained, but is of a {kind} that the plugin does "
                "not know. Export the decoder and serve its checkpoint."
            )
    _replace(values.loaded.model, norm, by_pool)


def _replace(model: nn.Module, module: nn.Module, by: nn.Module) -> None:
    """Put a module in another's place wherever the model holds it."""
    for owner in list(model.modules()):
        for attribute, child in list(owner.named_children()):
            if child is module and owner is not by:
                setattr(owner, attribute, by)
                for flag in _FUSED_NORMS:
                    if hasattr(owner, flag):
                        setattr(owner, flag, False)


def _own_weight(values: _Values, path: str, layer: Any) -> Tensor:
    """The weight as it was loaded; vLLM drops it on CPU once it is packed for a kernel."""
    if layer.weight.dim() == 2:
        return layer.weight.data
    name = values.stored_names[f"{path}.weight"]
    entry = read_weights(values.loaded.folder)[name]
    with safe_open(entry.path, "pt") as content:
        return content.get_tensor(name).to(values.pool_T.device, layer.params_dtype)


def _set_weight(layer: Any, weight: Tensor, path: str) -> None:
    """Give a linear layer of vLLM another weight, packed for its kernel as the first one was."""
    method = type(layer.quant_method).__name__
    if method != "UnquantizedLinearMethod":
        raise BackboneError(
            f"{path} is quantised ({method}): trained tensors cannot lie beside its weight. Serve "
            "the model unquantised, or exclude this layer from quantisation."
        )
    layer.weight = nn.Parameter(weight, requires_grad=False)
    layer.quant_method.process_weights_after_loading(layer)


_PATTERNS: Sequence[tuple[re.Pattern[str], Install]] = (
    (re.compile(r"(layers\.\d+\..+)\.(?:gate|up|down)_proj\.weight"), _widen_shared_expert),
    (re.compile(r"(layers\.\d+\.(?:mlp\.gate|router\.proj))\.weight"), _add_router_rows),
    (re.compile(r"(layers\.\d+\.router)\.scale"), _scale_router_input),
    (re.compile(r"(layers\.\d+)\.router\.per_expert_scale"), _scale_gates),
    (re.compile(r"(.*norm(?:_\d)?)\.weight"), _replace_norm),
)
