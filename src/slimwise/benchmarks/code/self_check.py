"""Published solutions must pass before any answer is graded, or the grader cannot be trusted."""

import hashlib
import json
import logging
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

from slimwise.artifacts.atomic import atomic_file
from slimwise.artifacts.strict_json import parse_json
from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.settings import GradingLimits
from slimwise.errors import GradingError
from slimwise.provenance import code_digest

_log = logging.getLogger(__name__)

Reference = Mapping[str, Any]


def check_canonical(
    references: Sequence[Reference],
    grade: Callable[[Reference], Verdict],
    limits: GradingLimits,
    broken: Mapping[str, str],
) -> None:
    """GradingError names every published solution that fails, those known as broken aside.

    What has passed on this machine with these limits and this code is not run again.
    """
    start = time.monotonic()
    record = limits.cache / f"canonical-{_conditions(limits)}.json"
    passed = _read(record)
    pending = {_digest(reference): reference for reference in references}
    pending = {digest: pending[digest] for digest in pending if digest not in passed}
    with ThreadPoolExecutor(limits.workers) as pool:
        verdicts = dict(zip(pending, pool.map(grade, pending.values()), strict=True))
    failed = {
        pending[digest]["task_id"]: verdict.reason
        for digest, verdict in verdicts.items()
        if not verdict.correct and pending[digest]["task_id"] not in broken
    }
    if failed:
        raise GradingError(_explain(failed, limits))
    if pending:
        _write(record, passed | set(pending))
    _log.info(
        "%d published solutions pass (%d checked now, %.0f s)",
        *(len(references), len(pending), time.monotonic() - start),
    )


def _explain(failed: Mapping[str, str], limits: GradingLimits) -> str:
    first = ", ".join(f"{item} ({reason})" for item, reason in list(failed.items())[:5])
    return (
        f"{len(failed)} published solutions fail here: {first}. Nothing was graded. Raise "
        f"grading.program_time_s = {limits.program_time_s} or grading.program_memory_gib = "
        f"{limits.program_memory_gib:g}, or fetch the data again."
    )


def _conditions(limits: GradingLimits) -> str:
    """Digest of what a verdict depends on beside the item."""
    parts = (
        code_digest("slimwise.benchmarks.code.grading"),
        sys.version,
        metadata.version("numpy"),
        limits.program_time_s,
        limits.program_memory_gib,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _digest(reference: Reference) -> str:
    return hashlib.sha256(json.dumps(reference, sort_keys=True).encode()).hexdigest()


def _read(record: Path) -> set[str]:
    try:
        return set(parse_json(record.read_bytes()))
    except (OSError, ValueError, TypeError):
        return set()


def _write(record: Path, passed: set[str]) -> None:
    with atomic_file(record) as temporary:
        temporary.write_text(json.dumps(sorted(passed)), encoding="utf-8")
