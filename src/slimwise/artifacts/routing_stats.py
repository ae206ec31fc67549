"""Routing statistics on disk: [L, E] float64 sums by component, as safetensors."""

# safetensors has no types that the strict rules accept.
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

import torch
from safetensors.torch import save_file

from slimwise.artifacts.atomic import atomic_file
from slimwise.artifacts.routing_sums import SCHEMA, read_routing_sums, sums_digest
from slimwise.core.routing_stats import RoutingStats
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

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
        "sha256": sums_digest({name: sums_LE.numpy() for name, sums_LE in tensors.items()}),
        "components": json.dumps(list(components)),
        "provenance": json.dumps(asdict(provenance)),
    }
    with atomic_file(path) as temporary:
        save_file(tensors, temporary, metadata)


def read_routing_stats(path: Path) -> dict[str, RoutingStats]:
    """Sums by component, in their order.

    ArtifactError if the file is missing or damaged, or a sum is not finite.
    """
    by_component = read_routing_sums(path)
    for component, sums in by_component.items():
        if sums.keys() != set(_NAMES):
            raise ArtifactError(
                f"{path} has sums {', '.join(sorted(sums))} of {component}; expected "
                f"{', '.join(sorted(_NAMES))}. Delete it and run the study again."
            )
    return {
        component: RoutingStats(**{name: torch.from_numpy(sums[name]) for name in _NAMES})
        for component, sums in by_component.items()
    }
