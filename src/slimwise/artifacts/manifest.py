"""The last file of a folder: what the folder holds, with size and SHA-256 of every file."""

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Any

from slimwise.artifacts.json_record import (
    read_json_record,
    read_json_schema,
    write_json_record,
)
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

MANIFEST_NAME = "manifest.json"
CHECKPOINT_SCHEMA = "slimwise.pruned_checkpoint/1"
"""Of the manifest of an exported checkpoint."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


def write_manifest(
    directory: Path,
    schema: str,
    provenance: Provenance,
    extra: Mapping[str, Any] = _NOTHING,
    digests: Mapping[str, str] = _NOTHING,
) -> None:
    """Write manifest.json over the files that the folder and its subfolders hold now.

    digests are the SHA-256 of files by name that their writer took already: not read again.
    """
    files = {
        name: _describe(directory / name, digests.get(name)) for name in _file_names(directory)
    }
    write_json_record(directory / MANIFEST_NAME, schema, {**extra, "files": files}, provenance)


def verify_manifest(directory: Path, schema: str) -> dict[str, Any]:
    """The manifest's payload, once every file has the size and digest that it names.

    Reads every byte. ArtifactError names files that are missing, changed, or not listed.
    """
    path = directory / MANIFEST_NAME
    payload = read_json_record(path, schema)
    listed: dict[str, Any] | None = payload.get("files")
    if not isinstance(listed, dict):
        raise ArtifactError(f"{path} lists no files. Delete it and run the study again.")
    present = set(_file_names(directory))
    faults = [f"{name} is missing" for name in sorted(set(listed) - present)]
    faults += [f"{name} is not listed" for name in sorted(present - set(listed))]
    both = sorted(present & set(listed))
    with ThreadPoolExecutor() as threads:
        found = threads.map(_describe, [directory / name for name in both])
        faults += [
            f"{name} has changed"
            for name, described in zip(both, found, strict=True)
            if described != listed[name]
        ]
    if faults:
        raise ArtifactError(
            f"{directory} is not what its manifest says: {'; '.join(faults)}. Delete the "
            "folder, then run the study or fetch it again."
        )
    return payload


def exported_folder(manifest: Path) -> Path:
    """The absolute folder of an exported checkpoint; ArtifactError if the manifest is not one's."""
    read_json_record(manifest, CHECKPOINT_SCHEMA)
    return manifest.parent.resolve()


def verify_if_exported(directory: Path) -> bool:
    """True once an exported checkpoint is what its manifest says, False if the folder is another's.

    Reads every byte. ArtifactError as verify_manifest, and if there is a manifest.json of no JSON.
    """
    path = directory / MANIFEST_NAME
    kind, _, _ = CHECKPOINT_SCHEMA.rpartition("/")
    if not path.exists() or not read_json_schema(path).startswith(kind):
        return False
    verify_manifest(directory, CHECKPOINT_SCHEMA)
    return True


def _file_names(directory: Path) -> list[str]:
    paths = (path for path in sorted(directory.rglob("*")) if path.is_file())
    names = (path.relative_to(directory).as_posix() for path in paths)
    return [name for name in names if name != MANIFEST_NAME]


def _describe(path: Path, digest: str | None = None) -> dict[str, Any]:
    return {"size_bytes": path.stat().st_size, "sha256": digest or _digest(path)}


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except OSError as failure:
        raise ArtifactError(f"cannot read {path}: {failure.strerror}.") from failure
