"""The model that a study prunes: where it lies, its shape, and a digest of its identity."""

from dataclasses import dataclass
from pathlib import Path

from slimwise.artifacts.json_record import read_typed_record, write_typed_record
from slimwise.core.moe import GateRule, MoEShape
from slimwise.provenance import Provenance

SCHEMA = "slimwise.backbone/1"


@dataclass(frozen=True)
class BackboneRecord:
    """digest is what checkpoint_digest gives for the model."""

    name: str
    model: Path
    model_type: str
    architecture: str
    shape: MoEShape
    gate_rule: GateRule
    dtype: str
    digest: str


def write_backbone_record(path: Path, record: BackboneRecord, provenance: Provenance) -> None:
    """Write the record as JSON."""
    write_typed_record(path, SCHEMA, record, provenance)


def read_backbone_record(path: Path) -> BackboneRecord:
    """The record; ArtifactError if the file is missing or malformed."""
    return read_typed_record(path, SCHEMA, BackboneRecord)
