"""What every stage of a study cost in wall time."""

import json
import re
from collections.abc import Collection
from pathlib import Path

import pandas as pd

from slimwise.errors import ArtifactError
from slimwise.report.tables.columns import STAGE_TIME_COLUMNS

_POOL = re.compile(r"[a-z]+-m\d+")


def stage_times(
    benchmarks: Path, setup_record: Path | None, *, pools: Collection[str]
) -> pd.DataFrame:
    """Seconds of each job, in the order in which the jobs ended, set-up first.

    A job's stage is its timing file's path under the folder, without the suffix; repeats of
    one job are averaged. pools are the study's pruned pools, such as reap-m32: jobs of others are
    of an earlier configuration. ArtifactError if the folder holds no timings.
    """
    found = [path for path in benchmarks.rglob("*.tsv") if _is_of(path.stem, pools)]
    files = sorted(found, key=lambda path: (path.stat().st_mtime, path))
    if not files:
        raise ArtifactError(
            f"no timings under {benchmarks}: the workflow engine writes one .tsv a job there. "
            "Run the study through the workflow."
        )
    rows = [
        (str(path.relative_to(benchmarks).with_suffix("")), _job_seconds(path)) for path in files
    ]
    if setup_record is not None:
        rows.insert(0, ("set_up", _setup_seconds(setup_record)))
    return pd.DataFrame(rows, columns=list(STAGE_TIME_COLUMNS))


def _is_of(job: str, pools: Collection[str]) -> bool:
    pool = _POOL.match(job)
    return pool is None or pool[0] in pools


def _job_seconds(path: Path) -> float:
    try:
        return float(pd.read_csv(path, sep="\t")["s"].mean())
    except (OSError, ValueError, KeyError, TypeError) as failure:
        raise ArtifactError(
            f"timing file {path} has no numeric column 's' ({failure}). Delete it and run its "
            "rule again."
        ) from failure


def _setup_seconds(path: Path) -> float:
    try:
        return float(json.loads(path.read_text(encoding="utf-8"))["seconds"])
    except (OSError, ValueError, KeyError, TypeError) as failure:
        raise ArtifactError(
            f"set-up record {path} is not a JSON object with a number 'seconds' ({failure}). "
            "Set the environment up again, or leave the record out."
        ) from failure
