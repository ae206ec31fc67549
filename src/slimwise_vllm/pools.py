"""The expert pools of a server: pool 0 is full, each keep set loaded at start is another.

Legend: L MoE layers, P pools, E experts.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor

from slimwise.artifacts.keep_set import KeepSetRecord, read_keep_set
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.artifacts.trained_record import TrainedRecord, read_trained_record, trained_digest
from slimwise.core.keep_set import KeepSet
from slimwise.core.masking import router_bias
from slimwise.errors import ConfigError, KeepSetError
from slimwise_vllm.settings import FULL_POOL, PluginSettings

_DIGEST_CHARS = 16


@dataclass(frozen=True)
class PrunedPool:
    """A keep set under the name that requests use, and the folder of what was trained for it."""

    name: str
    path: Path
    keep_set: KeepSet
    backbone_digest: str
    trained: Path | None = None

    @cached_property
    def digest(self) -> str:
        """What the pool computes with, whatever its name: equal pools may share KV."""
        if self.trained is None:
            return self.keep_set.digest[:_DIGEST_CHARS]
        content = self.keep_set.digest + trained_digest(self.trained)
        return hashlib.sha256(content.encode()).hexdigest()[:_DIGEST_CHARS]


@dataclass(frozen=True)
class Pools:
    """All pools; those after the full one are of one model's shape."""

    pruned: tuple[PrunedPool, ...]

    def __post_init__(self) -> None:
        first = self.pruned[0]
        for pool in self.pruned[1:]:
            if _shape(pool.keep_set) != _shape(first.keep_set):
                raise KeepSetError(
                    f"pool {pool.name!r} has layers x experts / top-k {_shape(pool.keep_set)}, "
                    f"pool {first.name!r} has {_shape(first.keep_set)}: keep sets of one server "
                    "must be of one model."
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The full pool, then the pruned ones in the order of their numbers."""
        return (FULL_POOL, *(pool.name for pool in self.pruned))

    @property
    def digests(self) -> tuple[str, ...]:
        """Content digest of each pool; empty for the full one."""
        return ("", *(pool.digest for pool in self.pruned))

    @property
    def num_layers(self) -> int:
        """MoE layers (L)."""
        return self.pruned[0].keep_set.num_layers

    @property
    def num_experts(self) -> int:
        """Experts of a layer (m)."""
        return self.pruned[0].keep_set.num_experts

    @property
    def top_k(self) -> int:
        """Experts a token (k)."""
        return self.pruned[0].keep_set.top_k

    @property
    def num_kept(self) -> tuple[int, ...]:
        """Experts of each pool, summed over the layers."""
        full = self.num_layers * self.num_experts
        return (full, *(sum(pool.keep_set.num_kept_per_layer) for pool in self.pruned))

    def index(self, name: str) -> int:
        """Place of the named pool; ConfigError lists the names there are."""
        if name not in self.names:
            raise ConfigError(f"pool {name!r} does not exist: choose one of {self.names}.")
        return self.names.index(name)


def _shape(keep_set: KeepSet) -> str:
    return f"{keep_set.num_layers} x {keep_set.num_experts} / {keep_set.top_k}"


def load_pools(settings: PluginSettings) -> Pools:
    """The pools of the settings' files; ArtifactError or KeepSetError names a bad one."""
    return Pools(tuple(_load_pool(name, files) for name, files in settings.pools.items()))


def _load_pool(name: str, files: PoolFiles) -> PrunedPool:
    record, folder = read_keep_set(files.keep_set), files.trained_folder
    if folder is not None:
        _check_training(name, record, read_trained_record(folder), folder)
    return PrunedPool(name, files.keep_set, record.keep_set, record.backbone_digest, folder)


def _check_training(name: str, chosen: KeepSetRecord, trained: TrainedRecord, folder: Path) -> None:
    found = (trained.backbone_digest, trained.keep_set_digest)
    wanted = (chosen.backbone_digest, chosen.keep_set.digest)
    for kind, theirs, ours in zip(("model", "keep set"), found, wanted, strict=True):
        if theirs != ours:
            raise KeepSetError(
                f"pool {name!r}: {folder} was trained with a {kind} of digest {theirs[:12]}, its "
                f"keep-set file names {ours[:12]}. Give the keep set it was distilled with."
            )


def pruned_experts(pools: Pools) -> Tensor:
    """True where a pool lacks an expert, [L, P, E] bool.

    SlimWise, What, item 2 (colocated).
    """
    full_LE = torch.zeros(pools.num_layers, pools.num_experts, dtype=torch.bool)
    return torch.stack([full_LE, *(router_bias(pool.keep_set) != 0 for pool in pools.pruned)], 1)
