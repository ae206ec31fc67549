"""Routing statistics on disk: one [L, E] float64 tensor a sum, as safetensors."""

import json
from dataclasses import asdict, fields
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from slimwise.artifacts.atomic import atomic_file
from slimwise.core.routing_stats import RoutingStats
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

SCHEMA = "slimwise.routing_stats/1"

_NAMES = tuple(field.name for field in fields(RoutingStats))


def write_routing_stats(path: Path, stats: RoutingStats, provenance: Provenance) -> None:
    """Write the sums under their field names."""
    tensors = {name: getattr(stats, name).contiguous() for name in _NAMES}
    metadata = {"schema": SCHEMA, "provenance": json.dumps(asdict(provenance))}
    with atomic_file(path) as temporary:
        save_file(tensors, temporary, metadata)


def read_routing_stats(path: Path) -> RoutingStats:
    """The sums; ArtifactError if the file is missing or damaged, or a sum is not finite."""
    try:
        with safe_open(path, framework="pt") as content:
            found = (content.metadata() or {}).get("schema")
            names = set(content.keys())
            tensors = {name: content.get_tensor(name) for name in names & set(_NAMES)}
    except (OSError, SafetensorError) as failure:
        raise ArtifactError(
            f"cannot read {path}: {failure}. Run the collect_stats rule again."
        ) from failure
    if found != SCHEMA or names != set(_NAMES):
        raise ArtifactError(
            f"{path} has schema {found!r} and tensors {', '.join(sorted(names))}; expected "
            f"{SCHEMA!r} and {', '.join(sorted(_NAMES))}. Run the collect_stats rule again."
        )
    stats = RoutingStats(**tensors)
    for name in _NAMES:
        sums_LE = getattr(stats, name)
        if not torch.isfinite(sums_LE).all() or (sums_LE < 0).any():
            raise ArtifactError(
                f"{path}: {name} holds values that are not finite or are below 0. Run the "
                "collect_stats rule again."
            )
    return stats
