"""The write_measured_tables stage: what was measured on a GPU, from the rows as they were written.

Nothing here needs a GPU: the rows are committed, and give the same tables anywhere.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from slimwise.artifacts.coverage_table import COVERAGE_COLUMNS
from slimwise.artifacts.json_rows import Row, read_json_rows
from slimwise.errors import ArtifactError
from slimwise.report.config import ReportConfig
from slimwise.report.measured.apart import DISAGGREGATED_COLUMNS, disaggregated_table
from slimwise.report.measured.columns import (
    CAPACITY_COLUMNS,
    DISTILL_SPEED_COLUMNS,
    EXPORT_SPEED_COLUMNS,
    KERNEL_TUNING_COLUMNS,
    MASK_OVERHEAD_COLUMNS,
    MASKED_AND_EXPORTED_COLUMNS,
    PREFILL_COLUMNS,
    RATIO_COLUMNS,
    SCORING_SPEED_COLUMNS,
    SERVED_COLUMNS,
    SERVED_PREFILL_COLUMNS,
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
from slimwise.report.measured.kernel_tuning import kernel_tuning_table
from slimwise.report.measured.notes import NOTES
from slimwise.report.measured.served import (
    served_prefill_table,
    served_ratio_table,
    served_table,
)
from slimwise.report.measured.split_rules import split_rule_table
from slimwise.report.measured.stage_speed import distillation_table, export_table, scoring_table
from slimwise.report.measured.throughput import ratio_markdown, ratio_table, throughput_table
from slimwise.report.table_files import Table, write_table_files

log = logging.getLogger(__name__)


def write_measured_tables(
    config: ReportConfig, *, backbone: str, rows: Sequence[Path], paper: Path, out: Path
) -> None:
    """Every table of measurements, each as CSV and Markdown, in the folder out.

    backbone is the published name of the shape whose decode steps were timed; rows are the files
    of measured rows, each known by its name; paper has the paper's ratios of throughput.
    """
    measured = _MeasuredRows(rows)
    curves = _Curves(config.target_tokens_per_s_per_user, backbone, paper)
    tables = [
        *curves.tables(measured.of("decode_steps"), "throughput", "ratio_at_target"),
        *curves.tables(measured.of("tuned_decode"), "tuned_throughput", "tuned_ratio_at_target"),
        *curves.tables(measured.of("long_context"), "long_context", "long_context_ratio"),
        *_decode_tables(measured.of("decode_steps"), backbone),
        Table(
            "disaggregated",
            disaggregated_table(
                measured.of("disaggregated"), backbone=backbone, target=curves.target
            ),
            DISAGGREGATED_COLUMNS,
        ),
        *curves.served_tables(measured.of("throughput") if "throughput" in measured else []),
        *_other_tables(measured, backbone, config.confidence),
    ]
    noted = [table._replace(note=NOTES[table.name]) for table in tables]
    write_table_files(noted, out, config.table_digits)
    log.info("wrote %d tables of measurements", len(tables))


class _MeasuredRows:
    """Files of measured rows by the names of their measurements."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = {path.stem: path for path in files}

    def __contains__(self, measurement: str) -> bool:
        return measurement in self._files

    def of(self, measurement: str) -> list[Row]:
        """The measurement's rows; ArtifactError if it has no file or no rows."""
        if measurement not in self._files:
            raise ArtifactError(
                f"no file of rows is named {measurement}.jsonl among {', '.join(self._files)}. "
                "Pass it too, or measure it."
            )
        return read_json_rows(self._files[measurement])


@dataclass(frozen=True)
class _Curves:
    """Throughput by batch, and its ratios at the target, of any rows of decode steps."""

    target: float
    backbone: str
    paper: Path

    def tables(self, rows: Sequence[Row], name: str, ratio_name: str) -> list[Table]:
        throughput = throughput_table(rows, backbone=self.backbone)
        ratios = ratio_table(throughput, target=self.target, paper=self.paper)
        return [
            Table(name, throughput, THROUGHPUT_COLUMNS),
            Table(ratio_name, ratios, RATIO_COLUMNS, ratio_markdown(ratios)),
        ]

    def served_tables(self, rows: Sequence[Row]) -> list[Table]:
        """The same of servers under load, and their prefill; none if none was measured."""
        if not rows:
            return []
        served = served_table(rows)
        ratios = served_ratio_table(served, target=self.target, paper=self.paper)
        prefill = served_prefill_table(rows)
        return [
            Table("served_throughput", served, SERVED_COLUMNS),
            Table("served_ratio_at_target", ratios, RATIO_COLUMNS, ratio_markdown(ratios)),
            Table("served_prefill_throughput", prefill, SERVED_PREFILL_COLUMNS),
        ]


def _decode_tables(rows: Sequence[Row], backbone: str) -> list[Table]:
    overheads = mask_overhead_table(rows, backbone=backbone)
    side_by_side = masked_and_exported_table(rows, backbone=backbone)
    return [
        Table("mask_overhead", overheads, MASK_OVERHEAD_COLUMNS),
        Table("masked_and_exported", side_by_side, MASKED_AND_EXPORTED_COLUMNS),
        Table("coverage", coverage_table(rows, backbone=backbone), COVERAGE_COLUMNS),
        Table("prefill_throughput", prefill_table(rows, backbone=backbone), PREFILL_COLUMNS),
        Table("capacity", capacity_table(rows, backbone=backbone), CAPACITY_COLUMNS),
    ]


def _other_tables(measured: _MeasuredRows, backbone: str, confidence: float) -> list[Table]:
    tuning = kernel_tuning_table(measured.of("kernel_tuning"), backbone=backbone)
    rules = split_rule_table(measured.of("split_rules"), confidence=confidence)
    distilling = distillation_table(measured.of("distill_speed"))
    return [
        Table("kernel_tuning", tuning, KERNEL_TUNING_COLUMNS),
        Table("scoring_speed", scoring_table(measured.of("scoring_speed")), SCORING_SPEED_COLUMNS),
        Table("distill_speed", distilling, DISTILL_SPEED_COLUMNS),
        Table("export_speed", export_table(measured.of("export_speed")), EXPORT_SPEED_COLUMNS),
        Table("split_rules", rules, SPLIT_RULE_COLUMNS),
    ]
