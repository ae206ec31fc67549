"""A keep set on disk, with the criterion and the model it was chosen for. Torch-free."""

from dataclasses import dataclass
from pathlib import Path

from slimwise.artifacts.json_record import read_typed_record, write_typed_record
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion
from slimwise.errors import KeepSetError
from slimwise.provenance import Provenance

SCHEMA = "slimwise.keep_set/1"


@dataclass(frozen=True)
class KeepSetRecord:
    """backbone_digest and model_type are those of the scored model's record."""

    keep_set: KeepSet
    criterion: Criterion
    backbone_digest: str
    model_type: str


def write_keep_set(path: Path, record: KeepSetRecord, provenance: Provenance) -> None:
    """Write the record as JSON."""
    write_typed_record(path, SCHEMA, record, provenance)


def read_keep_set(path: Path) -> KeepSetRecord:
    """The record; ArtifactError if malformed, KeepSetError naming layer and id if impossible."""
    try:
        return read_typed_record(path, SCHEMA, KeepSetRecord)
    except KeepSetError as failure:
        raise KeepSetError(f"{path}: {failure}") from failure
