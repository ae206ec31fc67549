"""Answers as they arrive, one JSON line each, so that a killed run loses none of them."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slimwise.core.vocabulary import Decoding, ServingMode
from slimwise.errors import ArtifactError
from slimwise.generate.questions import QuestionKey

Row = dict[str, Any]
"""A row of samples.parquet."""


def load_answers(log: Path) -> dict[QuestionKey, Row]:
    """The rows so far; a last line that a kill cut off is removed from the file."""
    if not log.exists():
        return {}
    content = log.read_bytes()
    complete = content[: content.rfind(b"\n") + 1]
    if len(complete) < len(content):
        os.truncate(log, len(complete))
    return {_key(line, log): json.loads(line) for line in complete.splitlines()}


def append_answer(log: Path, row: Mapping[str, Any]) -> None:
    """Add one row, which then survives the end of this process."""
    line = json.dumps(row, allow_nan=False).encode() + b"\n"
    with log.open("ab", buffering=0) as content:
        content.write(line)


def _key(line: bytes, log: Path) -> QuestionKey:
    try:
        row = json.loads(line)
        return QuestionKey(
            ServingMode(row["mode"]),
            row["benchmark"],
            row["item_id"],
            Decoding(row["decoding"]),
            row["run"],
        )
    except (ValueError, KeyError, TypeError) as failure:
        raise ArtifactError(
            f"{log} holds a line that is no answer: {line[:80]!r}. Delete the file; the decoder "
            "will be asked again."
        ) from failure
