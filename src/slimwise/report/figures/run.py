"""The draw_figures stage: every figure of a study, in each configured file format."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from slimwise.artifacts.distill_log import LOG_NAME, read_distill_log
from slimwise.artifacts.expert_scores import read_expert_scores
from slimwise.artifacts.grades import read_grades
from slimwise.artifacts.routing_sums import read_routing_sums
from slimwise.artifacts.tables import read_table
from slimwise.core.vocabulary import DecoderId, Decoding
from slimwise.report.comparable import comparable_answers
from slimwise.report.config import ReportConfig
from slimwise.report.figures.accuracy_by_num_kept import draw_accuracy_by_num_kept
from slimwise.report.figures.captions import figure_captions
from slimwise.report.figures.distillation import draw_distillation
from slimwise.report.figures.expert_load import draw_expert_load, draw_load_by_component
from slimwise.report.figures.keep_set_overlap import draw_keep_set_overlap, draw_overlap_by_layer
from slimwise.report.figures.length_accuracy import draw_length_accuracy
from slimwise.report.figures.output_lengths import draw_output_lengths
from slimwise.report.figures.style import save_figures
from slimwise.report.figures.training_free import draw_training_free
from slimwise.report.statistics.bootstrap import Bootstrap
from slimwise.report.tables.columns import (
    ACCURACY_COLUMNS,
    OVERLAP_BY_LAYER_COLUMNS,
    OVERLAP_COLUMNS,
)


def draw_figures(
    config: ReportConfig,
    *,
    accuracy: Path,
    keep_set_overlap: Path,
    overlap_by_layer: Path,
    grades: Sequence[Path],
    stats: Path,
    scores: Path,
    distilled: Sequence[Path],
    out: Path,
) -> None:
    """Every figure in the folder out, and captions.json with what is to be said of each.

    accuracy, keep_set_overlap and overlap_by_layer are tables that write_tables wrote, stats the
    routing statistics; beside the manifests of the distilled decoders lie their logs.
    """
    overlap = read_table(keep_set_overlap, OVERLAP_COLUMNS)
    by_layer = read_table(overlap_by_layer, OVERLAP_BY_LAYER_COLUMNS)
    accuracies = read_table(accuracy, ACCURACY_COLUMNS)
    answers = comparable_answers(pd.concat(map(read_grades, grades), ignore_index=True))
    bootstrap = Bootstrap.of(config)
    figures = {
        "accuracy_by_num_kept": draw_accuracy_by_num_kept(accuracies),
        "output_lengths": draw_output_lengths(answers),
        "expert_load": draw_expert_load(read_expert_scores(scores)),
        "expert_load_by_component": draw_load_by_component(_loads(stats)),
        "keep_set_overlap": draw_keep_set_overlap(overlap),
        "keep_set_overlap_by_layer": draw_overlap_by_layer(by_layer),
        "figure_3": draw_training_free(accuracies, answers, Decoding.SAMPLED, bootstrap),
        "figure_5": draw_training_free(accuracies, answers, Decoding.GREEDY, bootstrap),
        "length_accuracy": draw_length_accuracy(accuracies),
        "distillation": draw_distillation(_logs(distilled)),
    }
    captions = figure_captions(accuracies, answers)
    save_figures(figures, captions, out / "captions.json", config)


def _loads(stats: Path) -> dict[str, np.ndarray]:
    """Tokens routed to each expert, [L, E], by component of the mixture."""
    return {name: sums["tokens_LE"] for name, sums in read_routing_sums(stats).items()}


def _logs(manifests: Sequence[Path]) -> dict[DecoderId, pd.DataFrame]:
    folders = [path.parent for path in manifests]
    return {DecoderId.parse(path.name): read_distill_log(path / LOG_NAME) for path in folders}
