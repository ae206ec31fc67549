"""The write_tables stage: what the study measured, one row per configuration."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.grades import read_grades
from slimwise.artifacts.keep_set import read_keep_set
from slimwise.artifacts.parquet_rows import read_rows_provenance
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.provenance import Provenance, current_provenance
from slimwise.report.comparable import comparable_answers
from slimwise.report.config import ReportConfig
from slimwise.report.paper.cells import read_paper_cells
from slimwise.report.statistics.bootstrap import Bootstrap
from slimwise.report.table_files import Table, write_table_files
from slimwise.report.tables.accuracy import accuracy_table
from slimwise.report.tables.categories import NO_CATEGORIES, categories_table
from slimwise.report.tables.columns import (
    ACCURACY_COLUMNS,
    CATEGORY_COLUMNS,
    COMPARISON_COLUMNS,
    FINDING_COLUMNS,
    OVERLAP_BY_LAYER_COLUMNS,
    OVERLAP_COLUMNS,
    STAGE_TIME_COLUMNS,
)
from slimwise.report.tables.comparison import comparison_table
from slimwise.report.tables.findings import NO_FINDINGS, findings_table
from slimwise.report.tables.keep_set_overlap import overlap_by_layer_table, overlap_table
from slimwise.report.tables.paper_tables import PAPER_TABLES
from slimwise.report.tables.stage_times import stage_times

log = logging.getLogger(__name__)


def write_tables(
    config: ReportConfig,
    *,
    backbone: Path,
    grades: Sequence[Path],
    keep_sets: Sequence[Path],
    benchmarks: Path,
    setup_record: Path | None,
    paper: Path,
    out: Path,
) -> None:
    """Every table of the study, each as CSV and Markdown, in the folder out.

    paper holds the paper's printed results, to stand beside ours; benchmarks is the folder of
    the workflow engine's timings; setup_record the JSON record with the seconds that building
    the environment took, None where something else built it.
    """
    model = read_backbone_record(backbone)
    graded = pd.concat([_with_origin(path) for path in grades], ignore_index=True)
    answers = comparable_answers(graded)
    records = [read_keep_set(path) for path in keep_sets]
    accuracies = accuracy_table(answers, backbone=model.name, num_experts=model.shape.num_experts)
    here = _origin_columns(current_provenance())
    overlaps = overlap_table(records, backbone=model.name).assign(**here)
    by_layer = overlap_by_layer_table(records, backbone=model.name).assign(**here)
    times = stage_times(benchmarks, setup_record, pools={path.stem for path in keep_sets})
    comparison = comparison_table(
        accuracies, answers, bootstrap=Bootstrap.of(config), paper=read_paper_cells(paper)
    )
    tables = (
        Table("accuracy", accuracies, ACCURACY_COLUMNS),
        *(_paper_table(name, comparison) for name in PAPER_TABLES),
        *_tables_by_part(accuracies, answers),
        Table("keep_set_overlap", overlaps, OVERLAP_COLUMNS),
        Table("keep_set_overlap_by_layer", by_layer, OVERLAP_BY_LAYER_COLUMNS),
        Table("stage_times", times.assign(**here), STAGE_TIME_COLUMNS),
    )
    write_table_files(tables, out, config.table_digits)
    log.info("wrote %d tables from %d graded answers", len(tables), len(answers))


def _tables_by_part(accuracies: pd.DataFrame, answers: pd.DataFrame) -> tuple[Table, Table]:
    """Accuracy by category and by finding; a sentence where no benchmark has any."""
    categories = categories_table(accuracies, answers)
    findings = findings_table(accuracies, answers)
    return (
        Table(
            "categories", categories, CATEGORY_COLUMNS, NO_CATEGORIES if categories.empty else None
        ),
        Table("findings", findings, FINDING_COLUMNS, NO_FINDINGS if findings.empty else None),
    )


def _paper_table(name: str, comparison: pd.DataFrame) -> Table:
    rows = PAPER_TABLES[name].select(comparison)
    return Table(name, rows, COMPARISON_COLUMNS, PAPER_TABLES[name].markdown(rows))


def _with_origin(path: Path) -> pd.DataFrame:
    """Graded answers with the provenance of their grading, which may be another machine's."""
    return read_grades(path).assign(**_origin_columns(read_rows_provenance(path)))


def _origin_columns(provenance: Provenance) -> dict[str, str]:
    return {column: getattr(provenance, column) for column in PROVENANCE_COLUMNS}
