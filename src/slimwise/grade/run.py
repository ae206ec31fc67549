"""Grades the saved answers of one decoder; nothing is ever generated again."""

import logging
from pathlib import Path

from slimwise.artifacts.grades import write_grades
from slimwise.artifacts.samples import read_samples
from slimwise.grade.config import GradeConfig
from slimwise.grade.grading import grade_samples
from slimwise.provenance import current_provenance

_log = logging.getLogger(__name__)


def run(config: GradeConfig, *, samples: Path, out: Path) -> None:
    """Write grades.parquet, one row for each saved answer."""
    grades = grade_samples(read_samples(samples))
    write_grades(out, grades, current_provenance())
    _log.info(
        "graded %d answers: %d right, %d hit the budget",
        *(len(grades), grades["correct"].sum(), grades["hit_budget"].sum()),
    )
