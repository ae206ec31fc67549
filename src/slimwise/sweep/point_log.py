"""Measured points, one JSON line each, so that a killed sweep measures only what is missing."""

import json
import logging
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slimwise.artifacts.append_line import append_line
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.errors import ArtifactError
from slimwise.provenance import current_provenance

_log = logging.getLogger(__name__)
_KEY = "point"


class PointLog:
    """A file of rows that only grows, found by the digest of what was measured.

    Opening it removes a last line that a kill cut off; ArtifactError if another line is no point.
    commit stands in rows where git is not at hand.
    """

    def __init__(self, path: Path, commit: str | None = None) -> None:
        self._path, self._commit = path, commit
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        whole = [line for line in path.read_bytes().splitlines(True) if line.endswith(b"\n")]
        os.truncate(path, sum(map(len, whole)))
        self._rows = {str(row[_KEY]): row for row in (_row(line, path) for line in whole)}

    def __contains__(self, point: str) -> bool:
        return point in self._rows

    def row(self, point: str) -> dict[str, Any]:
        """The row of a point that was measured."""
        return self._rows[point]

    def append(self, point: str, row: dict[str, Any]) -> None:
        """Add the row of a point with its origin; raises as append_line does."""
        origin = asdict(current_provenance())
        whole = {_KEY: point, **row, **{name: origin[name] for name in PROVENANCE_COLUMNS}}
        whole |= {"commit": self._commit or origin["commit"], "versions": origin["versions"]}
        with self._path.open("ab", buffering=0) as file:
            append_line(file, json.dumps(whole, allow_nan=False).encode() + b"\n")
        self._rows[point] = whole
        _log.info("%s", json.dumps(row))


def _row(line: bytes, path: Path) -> dict[str, Any]:
    try:
        row = json.loads(line)
        row[_KEY]
    except (ValueError, KeyError, TypeError) as failure:
        raise ArtifactError(
            f"{path} holds a line that is no measured point: {line[:80]!r}. Delete that line."
        ) from failure
    return row
