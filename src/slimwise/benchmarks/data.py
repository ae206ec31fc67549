"""Rows of public data sets: from the hub at a pinned revision, or from a local folder."""

import functools
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slimwise.artifacts.strict_json import parse_json
from slimwise.errors import ConfigError

Row = Mapping[str, Any]


@dataclass(frozen=True)
class DataSource:
    """One split on the hub, the file that holds it below a local folder, and what is read of it."""

    dataset: str
    revision: str
    split: str
    local: str
    num_rows: int
    columns: tuple[str, ...]
    subset: str | None = None


@dataclass(frozen=True)
class DataRows:
    """Rows with exactly the columns of their source; sha256 is that of their content.

    The digest does not depend on the file format, so the hub's copy and a local one can be told
    to be the same.
    """

    rows: tuple[Row, ...]
    origin: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.origin} sha256:{self.sha256}"


@functools.lru_cache(maxsize=16)
def read_data(source: DataSource, folder: Path | None) -> DataRows:
    """The rows of the source, from below the folder, or from the hub if that is None.

    ConfigError if they cannot be had, or are not the rows that were published.
    """
    if folder is None:
        origin = f"{source.dataset}@{source.revision}"
        rows = _checked(_hub_rows(source), source, origin)
    else:
        origin = source.local
        path = folder.expanduser() / source.local
        rows = _checked(_file_rows(path), source, str(path))
    return DataRows(rows, origin, _digest(rows))


def _hub_rows(source: DataSource) -> Iterable[Any]:
    import datasets
    from datasets.exceptions import DatasetsError

    try:
        return datasets.load_dataset(
            source.dataset, source.subset, split=source.split, revision=source.revision
        )
    # The hub's client and the readers of data files raise these for whatever they cannot get.
    except (OSError, ValueError, DatasetsError) as failure:
        raise ConfigError(
            f"{source.dataset} (revision {source.revision}) cannot be had from the hub: {failure} "
            "Fetch it with network access first, or set evaluation.data_folder to a folder that "
            f"holds {source.local}."
        ) from failure


def _file_rows(path: Path) -> list[Row]:
    try:
        # As bytes: text also ends lines where JSON does not, at U+2028 and others.
        lines = path.read_bytes().splitlines()
    except OSError as failure:
        raise ConfigError(
            f"evaluation.data_folder: {path} cannot be read: {failure}. Put the file there, or "
            "leave evaluation.data_folder out to use the hub."
        ) from failure
    return [_parsed(line, number, path) for number, line in enumerate(lines, 1)]


def _parsed(line: bytes, number: int, path: Path) -> Row:
    try:
        return parse_json(line)
    except ValueError as failure:
        raise ConfigError(
            f"{path}, line {number} is not JSON: {failure}. Fetch the file again."
        ) from failure


def _checked(rows: Iterable[Any], source: DataSource, origin: str) -> tuple[Row, ...]:
    checked = []
    for index, row in enumerate(rows):
        missing = [name for name in source.columns if not isinstance(row, dict) or name not in row]
        if missing:
            raise ConfigError(
                f"{origin}, row {index} has no {', '.join(missing)}; expected "
                f"{', '.join(source.columns)}. Fetch the data again."
            )
        checked.append({name: row[name] for name in source.columns})
    if len(checked) != source.num_rows:
        raise ConfigError(
            f"{origin} has {len(checked)} rows, expected {source.num_rows}. Fetch the data again."
        )
    return tuple(checked)


def _digest(rows: Sequence[Row]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    return digest.hexdigest()
