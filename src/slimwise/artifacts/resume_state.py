"""Tensors from which an interrupted training goes on."""

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

_FILE_NAME = "state.safetensors"


def write_resume_state(work: Path, tensors: Mapping[str, Tensor]) -> None:
    """Put the tensors in the place of those saved before."""
    with atomic_file(work / _FILE_NAME) as path:
        save_file(dict(tensors), path)


def read_resume_state(work: Path) -> dict[str, Tensor] | None:
    """What was saved last; None if nothing was. ArtifactError if it is damaged."""
    path = work / _FILE_NAME
    if not path.exists():
        return None
    try:
        return load_file(path)
    except (OSError, ValueError, SafetensorError) as failure:
        raise ArtifactError(
            f"resume point {path} is damaged: {failure}. Delete it and run the same command again."
        ) from failure
