"""Grades the saved answers of one decoder; nothing is ever generated again."""

import logging
from pathlib import Path

from slimwise.artifacts.grades import write_grades
from slimwise.artifacts.parquet_rows import read_rows_provenance
from slimwise.artifacts.samples import read_samples
from slimwise.benchmarks.settings import GradingLimits
from slimwise.grade.config import GradeConfig
from slimwise.grade.disagreements import write_disagreements
from slimwise.grade.grading import grade_samples
from slimwise.provenance import current_provenance

_log = logging.getLogger(__name__)


def run(config: GradeConfig, *, samples: Path, out: Path, disagreements: Path, cache: Path) -> None:
    """Write grades.parquet, one row for each saved answer, and what comparisons disagreed on.

    cache keeps what grading any decoder of the study may use again.
    """
    limits = GradingLimits(**config.model_dump(), cache=cache)
    answers = read_samples(samples)
    grades = grade_samples(answers, limits)
    num_disagreements = write_disagreements(disagreements, answers, grades)
    asked = read_rows_provenance(samples)
    write_grades(out, grades, current_provenance(asked.data))
    _log.info(
        "graded %d answers: %d right, %d hit the budget, %d with comparisons that disagree",
        *(len(grades), grades["correct"].sum(), grades["hit_budget"].sum(), num_disagreements),
    )
