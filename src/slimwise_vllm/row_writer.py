"""Rows of a benchmark, appended to a file of JSON lines as soon as they are known."""

import json
import logging
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from slimwise.provenance import current_provenance

_log = logging.getLogger(__name__)


class RowWriter:
    """Appends rows with their origin, and logs each with the time since the process began."""

    def __init__(self, path: Path, commit: str | None, unlogged: Collection[str] = ()) -> None:
        """commit replaces that of git, where git is not at hand; unlogged columns are long."""
        origin = current_provenance()
        self._path = path
        self._commit = commit or origin.commit
        self._hardware = origin.hardware
        self._unlogged = unlogged
        self._started = time.perf_counter()
        path.parent.mkdir(parents=True, exist_ok=True)

    def write(self, row: dict[str, Any]) -> None:
        """Append the row with commit, date and hardware."""
        origin = {
            "commit": self._commit,
            "date": current_provenance().date,
            "hardware": self._hardware,
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, **origin}) + "\n")
        shown = {key: value for key, value in row.items() if key not in self._unlogged}
        _log.info("%.0f s %s", time.perf_counter() - self._started, json.dumps(shown))
