"""The manifest of what distillation trained: of which decoder, and from what. Torch-free."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from slimwise.artifacts.json_record import read_json_record, typed_payload
from slimwise.artifacts.manifest import MANIFEST_NAME, verify_manifest, write_manifest
from slimwise.core.vocabulary import Distillation
from slimwise.provenance import Provenance

SCHEMA = "slimwise.trained_tensors/2"


@dataclass(frozen=True)
class TrainedRecord:
    """All that trained tensors follow from: of equal records, one may stand for the other.

    decoder is spelt as DecoderId does, keep_set_digest is KeepSet.digest, and recipe is what
    DistillationConfig.recipe gives.
    """

    decoder: str
    rule: Distillation
    seed: int
    backbone_digest: str
    keep_set_digest: str
    recipe: Mapping[str, Any]

    def differences(self, other: "TrainedRecord") -> tuple[str, ...]:
        """Names of the fields, and of keys of the recipe, that differ."""
        ours, theirs = self._values(), other._values()
        names = sorted({*ours, *theirs})
        return tuple(name for name in names if ours.get(name) != theirs.get(name))

    def _values(self) -> dict[str, Any]:
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        recipe = named.pop("recipe")
        return named | {f"recipe.{key}": value for key, value in recipe.items()}


def write_trained_record(folder: Path, record: TrainedRecord, provenance: Provenance) -> None:
    """Write manifest.json over the folder's files; the last file of a distilled decoder."""
    extra = {field.name: getattr(record, field.name) for field in fields(record)}
    write_manifest(folder, SCHEMA, provenance, extra)


def read_trained_record(folder: Path) -> TrainedRecord:
    """The record, once every file of the folder is what its manifest says.

    ArtifactError names files that are missing or changed, and fields that are malformed.
    """
    payload = verify_manifest(folder, SCHEMA)
    return typed_payload(folder / MANIFEST_NAME, payload, TrainedRecord)


def trained_digest(folder: Path) -> str:
    """Digest of the folder's files, by its manifest alone: it tells the content, not the name."""
    payload = read_json_record(folder / MANIFEST_NAME, SCHEMA)
    return hashlib.sha256(json.dumps(payload.get("files")).encode()).hexdigest()
