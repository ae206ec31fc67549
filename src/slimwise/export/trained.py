"""The tensors of a distilled decoder, in the place of the backbone's own."""

import json
from collections.abc import Mapping
from pathlib import Path

from slimwise.artifacts.keep_set import KeepSetRecord
from slimwise.artifacts.trained_record import read_trained_record
from slimwise.artifacts.trained_tensors import FILE_NAME
from slimwise.artifacts.weight_files import WeightEntry, read_weight_file
from slimwise.backbones.trainable import widened_config
from slimwise.errors import CheckpointError
from slimwise.export.folder import CONFIG_NAME

Entries = dict[str, WeightEntry]


def with_trained(
    entries: Mapping[str, WeightEntry], manifest: Path, chosen: KeepSetRecord
) -> Entries:
    """The backbone's tensors, of which distillation has replaced some.

    CheckpointError if they were trained for another backbone or keep set, or are not among its
    tensors.
    """
    folder = manifest.parent
    record = read_trained_record(folder)
    found = (record.backbone_digest, record.keep_set_digest)
    expected = (chosen.backbone_digest, chosen.keep_set.digest)
    for name, digest, ours in zip(("backbone", "keep set"), found, expected, strict=True):
        if digest != ours:
            raise CheckpointError(
                f"{folder} was trained with a {name} of digest {digest[:12]}, not {ours[:12]}. Run "
                "the distill_decoder rule again."
            )
    trained = read_weight_file(folder / FILE_NAME)
    unknown = sorted(trained.keys() - entries.keys())
    if unknown:
        raise CheckpointError(
            f"{folder} holds {unknown[0]}, which the backbone does not have. Run the "
            "distill_decoder rule again."
        )
    return {**entries, **trained}


def widen_config(folder: Path) -> None:
    """Let the folder's config.json say that shared experts are twice as wide."""
    path = folder / CONFIG_NAME
    config = widened_config(json.loads(path.read_bytes()))
    path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
