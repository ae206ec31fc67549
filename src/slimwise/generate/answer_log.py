"""Answers as they arrive, one JSON line each, so that a killed run loses none of them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from slimwise.artifacts.append_line import append_line
from slimwise.artifacts.strict_json import parse_json
from slimwise.core.vocabulary import Decoding, ServingMode
from slimwise.errors import ArtifactError
from slimwise.generate.questions import QuestionKey

Row = dict[str, Any]
"""A row of samples.parquet but for the reference, which its question has."""


class AnswerLog:
    """A file of answers that only grows; memory holds where each one lies, not what it says.

    Opening it removes a last line that a kill cut off; ArtifactError if another line is no answer.
    """

    def __init__(self, path: Path) -> None:
        self._content = path.open("a+b", buffering=0)
        self._places: dict[QuestionKey, tuple[int, int]] = {}
        self._end = 0
        with path.open("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):
                    self._add(_key(line, path), len(line))
        self._content.truncate(self._end)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._content.close()

    def __contains__(self, key: QuestionKey) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def append(self, key: QuestionKey, row: Mapping[str, Any]) -> None:
        """Add one row, which then survives the end of this process and of the machine.

        ArtifactError if it cannot be written; the log is then as it was before.
        """
        line = json.dumps(row, allow_nan=False).encode() + b"\n"
        append_line(self._content, line)
        self._add(key, len(line))

    def row(self, key: QuestionKey) -> Row:
        """The answer to that question."""
        start, length = self._places[key]
        return json.loads(os.pread(self._content.fileno(), length, start))

    def _add(self, key: QuestionKey, length: int) -> None:
        self._places[key] = (self._end, length)
        self._end += length


def _key(line: bytes, log: Path) -> QuestionKey:
    try:
        row = parse_json(line)
        return QuestionKey(
            ServingMode(row["mode"]),
            str(row["benchmark"]),
            str(row["item_id"]),
            Decoding(row["decoding"]),
            int(row["run"]),
        )
    except (ValueError, KeyError, TypeError) as failure:
        raise ArtifactError(
            f"{log} holds a line that is no answer: {line[:80]!r}. Delete the file; the decoder "
            "will be asked again."
        ) from failure
