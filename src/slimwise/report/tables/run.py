"""The write_tables stage: what the study measured, one row per configuration."""

import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.keep_set import read_keep_set
from slimwise.artifacts.tables import PROVENANCE_COLUMNS, write_table
from slimwise.provenance import current_provenance
from slimwise.report.config import ReportConfig
from slimwise.report.tables.accuracy import ACCURACY_COLUMNS, accuracy_table
from slimwise.report.tables.keep_set_overlap import OVERLAP_COLUMNS, overlap_table
from slimwise.report.tables.stage_times import STAGE_TIME_COLUMNS, stage_times

log = logging.getLogger(__name__)


def write_tables(
    config: ReportConfig,
    *,
    backbone: Path,
    grades: Sequence[Path],
    keep_sets: Sequence[Path],
    benchmarks: Path,
    setup_record: Path | None,
    out: Path,
) -> None:
    """accuracy, keep_set_overlap and stage_times as CSV with Markdown twins, in the folder out.

    benchmarks is the folder of the workflow engine's timings; setup_record the seconds that
    building the environment took, None where something else built it.
    """
