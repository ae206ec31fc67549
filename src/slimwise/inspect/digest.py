"""A model's identity at the price of a few reads."""

import hashlib
from pathlib import Path

from slimwise.artifacts.weight_files import read_weights

_SAMPLES_PER_FILE = 64
_SAMPLE_BYTES = 4096


def checkpoint_digest(folder: Path) -> str:
    """Hex SHA-256 over config.json, and headers, sizes and samples of the weight files.

    Samples tell models of one shape apart, such as two trainings of the same model.
    CheckpointError if the weights are incomplete.
    """
    digest = hashlib.sha256((folder / "config.json").read_bytes())
    for path in sorted({entry.path for entry in read_weights(folder).values()}):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        _add_content(digest, path)
    return digest.hexdigest()


def _add_content(digest: "hashlib._Hash", path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as content:
        length = content.read(8)
        digest.update(length + content.read(int.from_bytes(length, "little")))
        for sample in range(_SAMPLES_PER_FILE):
            content.seek(size * sample // _SAMPLES_PER_FILE)
            digest.update(content.read(_SAMPLE_BYTES))
