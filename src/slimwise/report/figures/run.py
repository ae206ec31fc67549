"""The draw_figures stage: every figure of a study, in each configured file format."""

from collections.abc import Sequence
from pathlib import Path

from slimwise.report.config import ReportConfig


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
