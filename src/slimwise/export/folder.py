"""The files beside the weights: configuration, tokenizer, chat template, whatever there is."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from slimwise.artifacts.manifest import MANIFEST_NAME
from slimwise.artifacts.weight_files import INDEX_NAME
from slimwise.backbones.registry import InspectedCheckpoint
from slimwise.errors import ArtifactError

CONFIG_NAME = "config.json"

_WEIGHT_SUFFIXES = {".safetensors", ".bin", ".pt", ".pth", ".gguf", ".h5", ".msgpack", ".onnx"}
_REWRITTEN = {CONFIG_NAME, INDEX_NAME, MANIFEST_NAME}
_SPARE_BYTES = 64 * 2**20


def companion_files(source: Path) -> list[Path]:
    """What an exported checkpoint copies, relative to the source; hidden files stay behind."""
    return list(_companions(source))


def _companions(source: Path) -> Iterator[Path]:
    for path in sorted(source.rglob("*")):
        relative = path.relative_to(source)
        hidden = any(part.startswith(".") for part in relative.parts)
        if path.is_file() and not hidden and not _is_weight(relative):
            yield relative


def _is_weight(relative: Path) -> bool:
    name = relative.name
    of_other_weights = name.endswith(".index.json")
    return relative.suffix in _WEIGHT_SUFFIXES or of_other_weights or name in _REWRITTEN


def copy_companions(source: Path, target: Path) -> None:
    """Copy the files beside the weights, through links, into the same subfolders."""
    for relative in companion_files(source):
        (target / relative).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / relative, target / relative)


def write_config(source: Path, target: Path, found: InspectedCheckpoint, num_kept: int) -> None:
    """Write config.json for num_kept experts; a byte-for-byte copy if that is all of them."""
    if num_kept == found.shape.num_experts:
        shutil.copyfile(source / CONFIG_NAME, target / CONFIG_NAME)
        return
    pruned = found.backbone.pruned_config(found.config, num_kept)
    text = json.dumps(pruned, indent=2, ensure_ascii=False) + "\n"
    (target / CONFIG_NAME).write_text(text, encoding="utf-8")


def remove_leftovers(folder: Path) -> None:
    """Delete what killed exports to the folder left beside it; those still running keep theirs."""
    for leftover in folder.parent.glob(f".{folder.name}.*"):
        process = leftover.suffix.removeprefix(".")
        if process.isdigit() and not Path("/proc", process).exists():
            shutil.rmtree(leftover)


def check_disk_space(folder: Path, source: Path, num_weight_bytes: int) -> None:
    """Raise ArtifactError unless the folder's disk can take the weights and what goes beside."""
    existing = next(parent for parent in (folder, *folder.absolute().parents) if parent.is_dir())
    companions = sum((source / path).stat().st_size for path in companion_files(source))
    needed = num_weight_bytes + companions + _SPARE_BYTES
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise ArtifactError(
            f"{folder} needs {needed / 2**30:.2f} GiB, but {existing} has {free / 2**30:.2f} GiB "
            "free. Free disk space, or choose another results folder."
        )
