"""Routing statistics on disk: [L, E] float64 sums by component, as safetensors."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from slimwise.artifacts.atomic import atomic_file
from slimwise.artifacts.strict_json import parse_json
from slimwise.core.routing_stats import RoutingStats
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

SCHEMA = "slimwise.routing_stats/3"

_NAMES = tuple(field.name for field in fields(RoutingStats))


def write_routing_stats(
    path: Path, components: Mapping[str, RoutingStats], provenance: Provenance
) -> None:
    """Write each component's sums under "component/field", and the components' order."""
    tensors = {
        f"{component}/{name}": getattr(stats, name).contiguous()
        for component, stats in components.items()
        for name in _NAMES
    }
    metadata = {
        "schema": SCHEMA,
        "sha256": _digest(tensors),
        "components": json.dumps(list(components)),
        "provenance": json.dumps(asdict(provenance)),
    }
    with atomic_file(path) as temporary:
        save_file(tensors, temporary, metadata)


def read_routing_stats(path: Path) -> dict[str, RoutingStats]:
    """Sums by component, in their order.

    ArtifactError if the file is missing or damaged, or a sum is not finite.
    """
    try:
        with safe_open(path, framework="pt") as content:
            metadata = content.metadata() or {}
            tensors = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        components = list(parse_json(metadata.get("components", "[]")))
    except (OSError, ValueError, TypeError, SafetensorError) as failure:
        raise ArtifactError(
            f"cannot read {path}: {failure}. Run the collect_stats rule again."
        ) from failure
    found = metadata.get("schema")
    expected = {f"{component}/{name}" for component in components for name in _NAMES}
    if found != SCHEMA or not components or tensors.keys() != expected:
        raise ArtifactError(
            f"{path} has schema {found!r} and tensors {', '.join(sorted(tensors))}; expected "
            f"{SCHEMA!r} and {', '.join(sorted(_NAMES))} of each component. Run the collect_stats "
            "rule again."
        )
    for name, sums_LE in tensors.items():
        if not torch.isfinite(sums_LE).all() or (sums_LE < 0).any():
            raise ArtifactError(
                f"{path}: {name} holds values that are not finite or are below 0. Run the "
                "collect_stats rule again."
            )
    read = {
        component: RoutingStats(**{name: tensors[f"{component}/{name}"] for name in _NAMES})
        for component in components
    }
    if _digest(tensors) != metadata.get("sha256"):
        raise ArtifactError(
            f"{path} has changed since it was written. Run the collect_stats rule again."
        )
    return read


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """Hex SHA-256 of the tensors' names, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        digest.update(f"{name} {tuple(tensors[name].shape)}\n".encode())
        digest.update(tensors[name].numpy().tobytes())
    return digest.hexdigest()
