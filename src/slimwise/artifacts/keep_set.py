"""A keep set on disk, with the criterion and the model it was chosen for. Torch-free."""

from dataclasses import dataclass
from pathlib import Path

from slimwise.artifacts.backbone_record import BackboneRecord
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


def check_chosen_for(chosen: KeepSetRecord, record: BackboneRecord) -> None:
    """Raise KeepSetError unless the keep set was chosen for that backbone."""
    if (chosen.backbone_digest, chosen.model_type) != (record.digest, record.model_type):
        raise KeepSetError(
            f"keep set of a {chosen.model_type} with digest {chosen.backbone_digest[:12]} is not "
            f"of {record.name}, a {record.model_type} with digest {record.digest[:12]}. Run the "
            "collect_stats rule again."
        )
