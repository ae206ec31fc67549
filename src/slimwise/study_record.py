"""The last file of a study: what it was asked, and what it produced. Torch-free."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from slimwise.artifacts.json_record import write_json_record
from slimwise.config import StudyConfig
from slimwise.errors import ArtifactError
from slimwise.provenance import current_provenance

SCHEMA = "slimwise.study/1"


def write_study_record(study: StudyConfig, *, products: Sequence[Path], out: Path) -> None:
    """Write the resolved configuration, the decoders, and the SHA-256 of each product."""
    decoders = (*study.decoders(), *study.distilled_decoders())
    payload = {
        "configuration": study.model_dump(mode="json"),
        "decoders": [str(decoder) for decoder in decoders],
        "sha256": {path.name: _sha256(path) for path in products},
    }
    write_json_record(out, SCHEMA, payload, current_provenance())


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as failure:
        raise ArtifactError(
            f"product {path} cannot be read: {failure.strerror}. Run the rule that writes it again."
        ) from failure
