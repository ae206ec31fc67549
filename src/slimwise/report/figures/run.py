"""The draw_figures stage: every figure of a study, in each configured file format."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from slimwise.artifacts.expert_scores import read_expert_scores
from slimwise.artifacts.grades import read_grades
from slimwise.artifacts.tables import read_table
from slimwise.report.comparable import comparable_answers
from slimwise.report.config import ReportConfig
from slimwise.report.figures.accuracy_by_num_kept import draw_accuracy_by_num_kept
from slimwise.report.figures.expert_load import draw_expert_load
from slimwise.report.figures.keep_set_overlap import draw_keep_set_overlap
from slimwise.report.figures.output_lengths import draw_output_lengths
from slimwise.report.figures.style import save_figure
from slimwise.report.tables.columns import ACCURACY_COLUMNS, OVERLAP_COLUMNS

log = logging.getLogger(__name__)


def draw_figures(
    config: ReportConfig,
    *,
    accuracy: Path,
    keep_set_overlap: Path,
    grades: Sequence[Path],
    scores: Path,
    out: Path,
) -> None:
    """accuracy_by_num_kept, output_lengths, expert_load and keep_set_overlap in the folder out.

    accuracy and keep_set_overlap are the CSV tables that write_tables wrote.
    """
    overlap = read_table(keep_set_overlap, OVERLAP_COLUMNS)
    accuracies = read_table(accuracy, ACCURACY_COLUMNS)
    graded = pd.concat([read_grades(path) for path in grades], ignore_index=True)
    answers = comparable_answers(graded)
    figures = {
        "accuracy_by_num_kept": draw_accuracy_by_num_kept(accuracies),
        "output_lengths": draw_output_lengths(answers),
        "expert_load": draw_expert_load(read_expert_scores(scores)),
        "keep_set_overlap": draw_keep_set_overlap(overlap),
    }
    for name, figure in figures.items():
        save_figure(figure, out / name, formats=config.figure_formats, dpi=config.dpi)
    log.info("drew %d figures as %s", len(figures), ", ".join(config.figure_formats))
