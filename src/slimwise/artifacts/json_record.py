"""One small record a file: JSON with a schema id and provenance beside the payload."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from slimwise.artifacts.atomic import atomic_file
from slimwise.artifacts.strict_json import parse_json
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

Record = TypeVar("Record")

_OWN_KEYS = ("schema", "provenance")


def write_json_record(
    path: Path, schema: str, payload: Mapping[str, Any], provenance: Provenance
) -> None:
    """Write {"schema", "provenance", **payload}; the payload must not use those two keys."""
    assert not set(payload) & set(_OWN_KEYS)
    document = {"schema": schema, "provenance": asdict(provenance), **payload}
    with atomic_file(path) as temporary:
        temporary.write_text(json.dumps(document, indent=2, allow_nan=False) + "\n", "utf-8")


def read_json_record(path: Path, schema: str) -> dict[str, Any]:
    """The payload; ArtifactError if the file is missing, not JSON, or of another schema."""
    content = _content(path)
    found = content.get("schema")
    if found != schema:
        raise ArtifactError(
            f"{path} has schema {found!r}, expected {schema!r}. Delete it and run the study again."
        )
    return {key: value for key, value in content.items() if key not in _OWN_KEYS}


def read_json_schema(path: Path) -> str:
    """The schema of the file, "" if it has none; ArtifactError if it is missing or not JSON."""
    schema = _content(path).get("schema")
    return schema if isinstance(schema, str) else ""


def _content(path: Path) -> dict[str, Any]:
    """The object in the file, an empty one if its JSON is something else."""
    try:
        document: Any = parse_json(path.read_bytes())
    except FileNotFoundError as failure:
        raise ArtifactError(
            f"cannot read {path}: it is not there. Correct the path, or run the study again."
        ) from failure
    except (OSError, ValueError) as failure:
        raise ArtifactError(
            f"cannot read {path}: {failure}. Delete it and run the study again."
        ) from failure
    return cast("dict[str, Any]", document) if isinstance(document, dict) else {}


def read_json_provenance(path: Path) -> Provenance:
    """Where the record came from; ArtifactError if the file is missing or does not say."""
    try:
        return Provenance(**_content(path)["provenance"])
    except (KeyError, TypeError) as failure:
        raise ArtifactError(
            f"cannot read the provenance of {path}: {failure}. Delete it and run the study again."
        ) from failure


def write_typed_record(path: Path, schema: str, value: object, provenance: Provenance) -> None:
    """Write a dataclass whose fields are numbers, words, paths, tuples or such dataclasses."""
    payload = TypeAdapter(type(value)).dump_python(value, mode="json")
    write_json_record(path, schema, payload, provenance)


def read_typed_record(path: Path, schema: str, kind: type[Record]) -> Record:
    """The dataclass that write_typed_record wrote; ArtifactError names fields of a wrong type."""
    return typed_payload(path, read_json_record(path, schema), kind)


def typed_payload(path: Path, payload: Mapping[str, Any], kind: type[Record]) -> Record:
    """The dataclass that the payload of the file holds; further keys are another reader's.

    ArtifactError names fields that are missing or of a wrong type.
    """
    try:
        return TypeAdapter(kind).validate_json(json.dumps(payload), strict=True)
    except ValidationError as failure:
        faults = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in failure.errors()]
        raise ArtifactError(
            f"{path} is malformed: {'; '.join(faults)}. Delete it and run the study again."
        ) from failure
