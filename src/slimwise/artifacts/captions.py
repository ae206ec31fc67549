"""What stands below each figure, and what a reader who cannot see it is told."""

from dataclasses import asdict, dataclass
from pathlib import Path

from slimwise.artifacts.json_record import read_json_record, typed_payload, write_json_record
from slimwise.provenance import Provenance

SCHEMA = "slimwise.captions/1"


@dataclass(frozen=True)
class Caption:
    """Of one figure: its title, what is drawn (with n and units), and its alternative text."""

    title: str
    text: str
    alternative: str


@dataclass(frozen=True)
class _Captions:
    figures: dict[str, Caption]


def write_captions(path: Path, captions: dict[str, Caption], provenance: Provenance) -> None:
    """The captions by the names of their figures."""
    write_json_record(path, SCHEMA, asdict(_Captions(captions)), provenance)


def read_captions(path: Path) -> dict[str, Caption]:
    """The captions by the names of their figures; ArtifactError if the file is not that."""
    return typed_payload(path, read_json_record(path, SCHEMA), _Captions).figures
