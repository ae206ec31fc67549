"""Rows as parquet, with a schema id and provenance in the file's metadata. Torch-free."""

# pyarrow has no types that the strict rules accept.
# pyright: reportMissingTypeStubs=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from slimwise.artifacts.atomic import atomic_file
from slimwise.artifacts.strict_json import parse_json
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

_SCHEMA_KEY = b"slimwise.schema"
_PROVENANCE_KEY = b"slimwise.provenance"


def write_rows(path: Path, frame: pd.DataFrame, schema: str, provenance: Provenance) -> None:
    """Write the frame without its index."""
    write_row_batches(path, [frame], schema, provenance)


def write_row_batches(
    path: Path, frames: Iterable[pd.DataFrame], schema: str, provenance: Provenance
) -> None:
    """Write the frames below each other, one at a time; there must be one, and types agree."""
    own = {
        _SCHEMA_KEY: schema.encode(),
        _PROVENANCE_KEY: json.dumps(asdict(provenance)).encode(),
    }
    tables = (pa.Table.from_pandas(frame, preserve_index=False) for frame in frames)
    first = next(tables)
    labelled = first.schema.with_metadata({**(first.schema.metadata or {}), **own})
    with (
        atomic_file(path) as temporary,
        pq.ParquetWriter(temporary, labelled, write_page_checksum=True) as content,
    ):
        for table in itertools.chain([first], tables):
            content.write_table(table)


def read_rows_provenance(path: Path) -> Provenance:
    """Where the rows came from; ArtifactError if the file is missing or does not say."""
    try:
        metadata = pq.read_schema(path).metadata or {}
        return Provenance(**parse_json(metadata[_PROVENANCE_KEY]))
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError) as failure:
        raise ArtifactError(
            f"cannot read the provenance of {path}: {failure}. Delete it and run the study again."
        ) from failure


def read_rows(path: Path, schema: str, columns: Sequence[str]) -> pd.DataFrame:
    """The frame that write_rows wrote.

    ArtifactError if the file is missing or damaged, has another schema or other columns.
    """
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as content:
            table = content.read()
        found = (table.schema.metadata or {}).get(_SCHEMA_KEY, b"").decode(errors="replace")
        # Without its metadata: pandas has a copy of the types there, which no checksum covers.
        frame = table.replace_schema_metadata().to_pandas()
    except (OSError, ValueError, pa.ArrowException) as failure:
        raise ArtifactError(
            f"cannot read {path}: {failure}. Delete it and run the study again."
        ) from failure
    if found != schema:
        raise ArtifactError(
            f"{path} has schema {found!r}, expected {schema!r}. Delete it and run the study again."
        )
    if list(frame.columns) != list(columns):
        raise ArtifactError(
            f"{path} has columns {', '.join(frame.columns)}; expected {', '.join(columns)}. "
            "Delete it and run the study again."
        )
    return frame
