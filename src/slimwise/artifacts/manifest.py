"""The last file of a folder: what the folder holds, with size and SHA-256 of every file."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from slimwise.artifacts.json_record import read_json_record, write_json_record
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
    for name in sorted(present & set(listed)):
        if _describe(directory / name) != listed[name]:
            faults.append(f"{name} has changed")
    if faults:
        raise ArtifactError(
            f"{directory} is not what its manifest says: {'; '.join(faults)}. Delete the "
            "folder and run the study again."
        )
    return payload


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
