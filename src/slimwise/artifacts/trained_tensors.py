"""What distillation trained, as tensors that replace a checkpoint's own."""

# safetensors has no types that the strict rules accept.
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from slimwise.artifacts.atomic import atomic_file
from slimwise.errors import ArtifactError

FILE_NAME = "trained.safetensors"
"""Beside it lies manifest.json, which trained_record writes."""


def write_trained_tensors(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write the tensors under their names in the checkpoint.

    Routers have the rows of all experts; shared experts are twice as wide, the trained half last.
    """
    with atomic_file(folder / FILE_NAME) as path:
        save_file(dict(tensors), path, metadata={"format": "pt"})


def read_trained_tensors(folder: Path) -> dict[str, Tensor]:
    """The tensors by name; trained_record tells whether the file is as it was written.

    ArtifactError if the file is missing or damaged.
    """
    try:
        return load_file(folder / FILE_NAME)
    except (OSError, ValueError, SafetensorError) as failure:
        raise ArtifactError(
            f"cannot read {folder / FILE_NAME}: {failure}. Delete it and run the study again."
        ) from failure
