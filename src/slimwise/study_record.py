"""The last stage of a study: what it was asked, and what it produced. Torch-free."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from slimwise.artifacts.study_record import StudyRecord, write_study_record
from slimwise.config import StudyConfig
from slimwise.errors import ArtifactError
from slimwise.provenance import current_provenance


def record_study(study: StudyConfig, *, products: Sequence[Path], out: Path) -> None:
    """Write the resolved configuration, the decoders, and the SHA-256 of each product."""
    decoders = (*study.decoders(), *study.distilled_decoders())
    record = StudyRecord(
        configuration=study.model_dump(mode="json"),
        decoders=tuple(map(str, decoders)),
        sha256={path.name: _sha256(path) for path in products},
    )
    write_study_record(out, record, current_provenance())


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as failure:
        raise ArtifactError(
            f"product {path} cannot be read: {failure.strerror}. Run the rule that writes it again."
        ) from failure
