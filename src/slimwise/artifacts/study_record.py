"""The record of a finished study: what it was asked, and what it produced. Torch-free."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slimwise.artifacts.json_record import read_typed_record, write_typed_record
from slimwise.provenance import Provenance

SCHEMA = "slimwise.study/1"


@dataclass(frozen=True)
class StudyRecord:
    """configuration is the whole of it; sha256 the digest of each table and figure by file name."""

    configuration: dict[str, Any]
    decoders: tuple[str, ...]
    sha256: dict[str, str]


def write_study_record(path: Path, record: StudyRecord, provenance: Provenance) -> None:
    """Write the record as JSON."""
    write_typed_record(path, SCHEMA, record, provenance)


def read_study_record(path: Path) -> StudyRecord:
    """The record; ArtifactError if the file is missing or not that."""
    return read_typed_record(path, SCHEMA, StudyRecord)
