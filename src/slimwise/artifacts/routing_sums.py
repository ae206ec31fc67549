"""What a file of routing statistics holds, as arrays. Torch-free."""

# safetensors has no types that the strict rules accept.
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from slimwise.artifacts.strict_json import parse_json
from slimwise.errors import ArtifactError

SCHEMA = "slimwise.routing_stats/3"

Sums = dict[str, np.ndarray]
"""Sums over calibration tokens by name, each [L, E] float64."""


def read_routing_sums(path: Path) -> dict[str, Sums]:
    """Sums by component, in their order; "tokens_LE" is the number of tokens routed to each expert.

    ArtifactError if the file is missing, damaged or changed, or a sum is not finite.
    """
    try:
        with safe_open(path, framework="np") as content:
            metadata = content.metadata() or {}
            arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        components = list(parse_json(metadata.get("components", "[]")))
    except (OSError, ValueError, TypeError, SafetensorError) as failure:
        raise ArtifactError(
            f"cannot read {path}: {failure}. Delete it and run the study again."
        ) from failure
    found = metadata.get("schema")
    if found != SCHEMA or {name.partition("/")[0] for name in arrays} != set(components):
        raise ArtifactError(
            f"{path} has schema {found!r} and tensors {', '.join(sorted(arrays))}; expected "
            f"{SCHEMA!r} and sums of each component. Delete it and run the study again."
        )
    for name, sums_LE in arrays.items():
        if not np.isfinite(sums_LE).all() or (sums_LE < 0).any():
            raise ArtifactError(
                f"{path}: {name} holds values that are not finite or are below 0. Delete "
                "it and run the study again."
            )
    if sums_digest(arrays) != metadata.get("sha256"):
        raise ArtifactError(
            f"{path} has changed since it was written. Delete it and run the study again."
        )
    return {component: _of(component, arrays) for component in components}


def sums_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Hex SHA-256 of the arrays' names, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].shape}\n".encode())
        digest.update(arrays[name].tobytes())
    return digest.hexdigest()


def _of(component: str, arrays: Mapping[str, np.ndarray]) -> Sums:
    prefix = f"{component}/"
    return {
        name.removeprefix(prefix): sums_LE
        for name, sums_LE in arrays.items()
        if name.startswith(prefix)
    }
