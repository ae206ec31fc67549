"""A model's identity at the price of a few reads. Torch-free."""

import hashlib
from pathlib import Path

from slimwise.artifacts.backbone_record import BackboneRecord
from slimwise.artifacts.weight_files import LENGTH_BYTES, read_weights
from slimwise.errors import CheckpointError

_WHOLE_FILE_BYTES = 256 * 2**20
_SAMPLES_PER_FILE = 64
_SAMPLE_BYTES = 4096


def checkpoint_digest(folder: Path) -> str:
    """Hex SHA-256 over config.json, and headers, sizes and bytes of the weight files.

    Of files above 256 MiB only even samples are read, enough to tell two trainings of one model
    apart; an edit of a few tensors between samples would go unseen there.
    CheckpointError if the weights are incomplete.
    """
    digest = hashlib.sha256(_config_bytes(folder))
    for path in sorted({entry.path for entry in read_weights(folder).values()}):
        digest.update(f"{path.name} {path.stat().st_size}\n".encode())
        for piece in _pieces(path):
            digest.update(piece)
    return digest.hexdigest()


def check_unchanged(record: BackboneRecord) -> None:
    """Raise CheckpointError unless the model still is the one that was inspected."""
    found = checkpoint_digest(record.model)
    if found != record.digest:
        raise CheckpointError(
            f"{record.model} has digest {found[:12]}, but {record.digest[:12]} was inspected: the "
            "model has changed. Run the inspect_backbone rule again."
        )


def _config_bytes(folder: Path) -> bytes:
    try:
        return (folder / "config.json").read_bytes()
    except OSError as failure:
        raise CheckpointError(
            f"cannot read {folder}/config.json: {failure.strerror}. Fetch the checkpoint again."
        ) from failure


def _pieces(path: Path) -> list[bytes]:
    """The whole file if it is small, else its header and samples at even distances."""
    size = path.stat().st_size
    if size <= _WHOLE_FILE_BYTES:
        return [path.read_bytes()]
    with path.open("rb") as content:
        length = content.read(LENGTH_BYTES)
        pieces = [length, content.read(int.from_bytes(length, "little"))]
        for sample in range(_SAMPLES_PER_FILE):
            content.seek(size * sample // _SAMPLES_PER_FILE)
            pieces.append(content.read(_SAMPLE_BYTES))
    return pieces
