"""The write_measured_tables stage: what was measured on a GPU, from the rows as they were written.

Nothing here needs a GPU: the rows are committed, and give the same tables anywhere.
"""

import logging
from pathlib import Path

from slimwise.artifacts.coverage_table import COVERAGE_COLUMNS
from slimwise.artifacts.json_rows import read_json_rows
from slimwise.report.config import ReportConfig
from slimwise.report.measured.columns import (
    CAPACITY_COLUMNS,
    DISTILL_SPEED_COLUMNS,
    EXPORT_SPEED_COLUMNS,
    MASK_OVERHEAD_COLUMNS,
    MASKED_AND_EXPORTED_COLUMNS,
    PREFILL_COLUMNS,
    RATIO_COLUMNS,
    SCORING_SPEED_COLUMNS,
    SPLIT_RULE_COLUMNS,
    THROUGHPUT_COLUMNS,
)
from slimwise.report.measured.decode_tables import (
    capacity_table,
    coverage_table,
    mask_overhead_table,
    masked_and_exported_table,
    prefill_table,
)
from slimwise.report.measured.notes import NOTES
from slimwise.report.measured.split_rules import split_rule_table
from slimwise.report.measured.stage_speed import distillation_table, export_table, scoring_table
from slimwise.report.measured.throughput import ratio_markdown, ratio_table, throughput_table
from slimwise.report.table_files import Table, write_table_files

log = logging.getLogger(__name__)


def write_measured_tables(
    config: ReportConfig,
    *,
    backbone: str,
    decode_steps: Path,
    scoring_speed: Path,
    distill_speed: Path,
    export_speed: Path | None,
    split_rules: Path,
    paper: Path,
    out: Path,
) -> None:
    """Every table of measurements, each as CSV and Markdown, in the folder out.

    backbone is the published name of the shape whose decode steps were timed; paper has the
    paper's ratios of throughput. The other files hold the rows of one measurement each.
    """
    tables = [
        *_decode_tables(config, decode_steps, backbone, paper),
        Table("scoring_speed", scoring_table(read_json_rows(scoring_speed)), SCORING_SPEED_COLUMNS),
        Table(
            "distill_speed",
            distillation_table(read_json_rows(distill_speed)),
            DISTILL_SPEED_COLUMNS,
        ),
        Table(
            "split_rules",
            split_rule_table(read_json_rows(split_rules), confidence=config.confidence),
            SPLIT_RULE_COLUMNS,
        ),
    ]
    if export_speed is not None:
        rows = export_table(read_json_rows(export_speed))
        tables.append(Table("export_speed", rows, EXPORT_SPEED_COLUMNS))
    noted = [table._replace(note=NOTES[table.name]) for table in tables]
    write_table_files(noted, out, config.table_digits)
    log.info("wrote %d tables of measurements", len(tables))


def _decode_tables(
    config: ReportConfig, decode_steps: Path, backbone: str, paper: Path
) -> list[Table]:
    rows = read_json_rows(decode_steps)
    throughput = throughput_table(rows, backbone=backbone)
    ratios = ratio_table(throughput, target=config.target_tokens_per_s_per_user, paper=paper)
    overheads = mask_overhead_table(rows, backbone=backbone)
    side_by_side = masked_and_exported_table(rows, backbone=backbone)
    return [
        Table("throughput", throughput, THROUGHPUT_COLUMNS),
        Table("ratio_at_target", ratios, RATIO_COLUMNS, ratio_markdown(ratios)),
        Table("mask_overhead", overheads, MASK_OVERHEAD_COLUMNS),
        Table("masked_and_exported", side_by_side, MASKED_AND_EXPORTED_COLUMNS),
        Table("coverage", coverage_table(rows, backbone=backbone), COVERAGE_COLUMNS),
        Table("prefill_throughput", prefill_table(rows, backbone=backbone), PREFILL_COLUMNS),
        Table("capacity", capacity_table(rows, backbone=backbone), CAPACITY_COLUMNS),
    ]
