"""The stages as subcommands: each names its entry, its slice and its flags, and loads nothing."""

import importlib
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from slimwise.core.vocabulary import Criterion, DecoderId, Distillation


@dataclass(frozen=True)
class Flag:
    """A keyword of the stage's entry; a slice is the "module:class" of a JSON value.

    A flag that has a default may be left out on the command line.
    """

    name: str
    kind: Callable[[str], Any] = Path
    many: bool = False
    slice: str | None = None
    default: Callable[[], Any] | None = None

    def add_to(self, parser: ArgumentParser) -> None:
        """Add the flag to its subcommand's parser."""
        parser.add_argument(
            f"--{self.name.replace('_', '-')}",
            required=self.default is None,
            nargs="*" if self.many else None,
            type=str if self.slice else self.kind,
            metavar="JSON" if self.slice else None,
        )

    def value(self, arguments: Namespace) -> Any:
        """What the entry is called with; ConfigError if a slice is refused."""
        if self.default is not None and getattr(arguments, self.name) is None:
            return self.default()
        given = getattr(arguments, self.name)
        return given if self.slice is None else _parse(self.slice, given)


@dataclass(frozen=True)
class Command:
    """A subcommand; the entry is called with the config slice, then the flags as keywords."""

    name: str
    summary: str
    entry: str
    config: str
    flags: tuple[Flag, ...]

    def run(self, arguments: Namespace) -> None:
        """Call the stage's entry; what it raises passes through."""
        config = _parse(self.config, arguments.config)
        keywords = {flag.name: flag.value(arguments) for flag in self.flags}
        _load(self.entry)(config, **keywords)


def _setup_record() -> Path | None:
    """Where workflow/launch.py left the seconds that building this environment took."""
    path = Path(sys.prefix) / "slimwise_setup.json"
    return path if path.is_file() else None


def _nothing() -> None:
    return None


COMMANDS = (
    Command(
        "train-backbone",
        "Train the miniature backbone on its synthetic tasks.",
        "slimwise.train.run:run",
        "slimwise.train.config:TrainConfig",
        (Flag("out"), Flag("work")),
    ),
    Command(
        "inspect-backbone",
        "Record shape, gate rule and digest of the model to prune.",
        "slimwise.inspect.run:run",
        "slimwise.inspect.config:BackboneConfig",
        (Flag("trained", default=_nothing), Flag("out")),
    ),
    Command(
        "check-backbone",
        "Refuse a model that cannot be pruned and distilled as a study asks.",
        "slimwise.backbone_check:run",
        "slimwise.config:StudyConfig",
        (Flag("backbone"),),
    ),
    Command(
        "collect-stats",
        "Sum routing statistics over the calibration mixture.",
        "slimwise.calibrate.run:run",
        "slimwise.calibrate.config:CalibrationConfig",
        (Flag("backbone"), Flag("out"), Flag("work")),
    ),
    Command(
        "measure-scoring",
        "Measure the speed of collecting statistics on a published shape.",
        "slimwise.calibrate.speed.run:run",
        "slimwise.calibrate.speed.config:ScoringSpeedConfig",
        (Flag("out"),),
    ),
    Command(
        "score-experts",
        "Rank experts by every criterion.",
        "slimwise.score.run:run",
        "slimwise.score.config:ScoreConfig",
        (Flag("stats"), Flag("out")),
    ),
    Command(
        "select-experts",
        "Choose the experts that one pruned decoder keeps.",
        "slimwise.select.run:run",
        "slimwise.select.config:SelectionConfig",
        (
            Flag("backbone"),
            Flag("scores"),
            Flag("criterion", Criterion),
            Flag("num_kept", int),
            Flag("out"),
        ),
    ),
    Command(
        "export-decoder",
        "Write the checkpoint that holds only kept experts.",
        "slimwise.export.run:run",
        "slimwise.export.config:ExportConfig",
        (Flag("backbone"), Flag("keep_set"), Flag("trained", default=_nothing), Flag("out")),
    ),
    Command(
        "measure-export",
        "Measure the speed of exporting a synthetic checkpoint beside a plain copy.",
        "slimwise.export.speed.run:run",
        "slimwise.export.speed.config:ExportSpeedConfig",
        (Flag("out"), Flag("work")),
    ),
    Command(
        "distill-decoder",
        "Train what one pruned decoder needs to continue from the full model's cache.",
        "slimwise.distill.embedded:run",
        "slimwise.distill.config:DistillationConfig",
        (
            Flag("backbone"),
            Flag("keep_set"),
            Flag("rule", Distillation),
            Flag("embedded", default=_nothing),
            Flag("out"),
            Flag("work"),
        ),
    ),
    Command(
        "measure-distillation",
        "Measure the speed of distillation on a published shape.",
        "slimwise.distill.speed.run:run",
        "slimwise.distill.speed.config:DistillSpeedConfig",
        (Flag("out"),),
    ),
    Command(
        "generate-answers",
        "Ask one decoder every benchmark item.",
        "slimwise.generate.run:run",
        "slimwise.generate.config:EvaluationConfig",
        (
            Flag("serving", slice="slimwise.engine.config:ServingConfig"),
            Flag("backbone"),
            Flag("checkpoint", default=_nothing),
            Flag("pool", many=True, default=tuple),
            Flag(
                "disaggregation",
                slice="slimwise.engine.config:DisaggregationConfig",
                default=_nothing,
            ),
            Flag("decoder", DecoderId.parse),
            Flag("out"),
            Flag("work"),
        ),
    ),
    Command(
        "grade-answers",
        "Grade every answer of one decoder.",
        "slimwise.grade.run:run",
        "slimwise.grade.config:GradeConfig",
        (Flag("samples"), Flag("out"), Flag("disagreements"), Flag("cache")),
    ),
    Command(
        "check-floor",
        "Refuse a full model below its accuracy floor.",
        "slimwise.grade.floor:run",
        "slimwise.inspect.config:BackboneConfig",
        (Flag("grades"), Flag("out")),
    ),
    Command(
        "measure-coverage",
        "Count the experts that decode steps of the full model read.",
        "slimwise.generate.coverage.run:run",
        "slimwise.generate.coverage.config:CoverageConfig",
        (
            Flag("evaluation", slice="slimwise.generate.config:EvaluationConfig"),
            Flag("backbone"),
            Flag("samples"),
            Flag("out"),
        ),
    ),
    Command(
        "sweep-throughput",
        "Measure the throughput of one decoder under a ladder of loads.",
        "slimwise.sweep.run:run",
        "slimwise.sweep.config:LoadConfig",
        (
            Flag("serving", slice="slimwise.engine.config:ServingConfig"),
            Flag("disaggregation", slice="slimwise.engine.config:DisaggregationConfig"),
            Flag("backbone"),
            Flag("decoder", str),
            Flag("files", many=True),
            Flag("out"),
            Flag("work"),
        ),
    ),
    Command(
        "measure-throughput",
        "Measure the throughput of one deployment outside a study.",
        "slimwise.sweep.alone:run",
        "slimwise.sweep.config:DeploymentConfig",
        (
            Flag("endpoint", str, default=_nothing),
            Flag("commit", str, default=_nothing),
            Flag("out"),
            Flag("work"),
        ),
    ),
    Command(
        "cross-check-scores",
        "Set our scores of the full decoder beside lm-eval's.",
        "slimwise.cross_check.run:run",
        "slimwise.cross_check.config:CrossCheckConfig",
        (
            Flag("evaluation", slice="slimwise.generate.config:EvaluationConfig"),
            Flag("grading", slice="slimwise.grade.config:GradeConfig"),
            Flag("serving", slice="slimwise.engine.config:ServingConfig"),
            Flag("backbone"),
            Flag("grades"),
            Flag("out"),
            Flag("work"),
        ),
    ),
    Command(
        "write-tables",
        "Write the result tables as CSV and Markdown.",
        "slimwise.report.tables.run:write_tables",
        "slimwise.report.config:ReportConfig",
        (
            Flag("backbone"),
            Flag("grades", many=True),
            Flag("keep_sets", many=True),
            Flag("benchmarks"),
            Flag("setup_record", default=_setup_record),
            Flag("paper"),
            Flag("out"),
        ),
    ),
    Command(
        "draw-figures",
        "Draw every figure of the study.",
        "slimwise.report.figures.run:draw_figures",
        "slimwise.report.config:ReportConfig",
        (
            Flag("accuracy"),
            Flag("keep_set_overlap"),
            Flag("overlap_by_layer"),
            Flag("grades", many=True),
            Flag("stats"),
            Flag("scores"),
            Flag("distilled", many=True),
            Flag("out"),
        ),
    ),
    Command(
        "write-measured-tables",
        "Write the tables of what was measured on a GPU.",
        "slimwise.report.measured.tables:write_measured_tables",
        "slimwise.report.config:ReportConfig",
        (
            Flag("backbone", str),
            Flag("rows", many=True),
            Flag("paper"),
            Flag("out"),
        ),
    ),
    Command(
        "draw-measured-figures",
        "Draw the figures of what was measured on a GPU.",
        "slimwise.report.measured.figures.run:draw_measured_figures",
        "slimwise.report.config:ReportConfig",
        (Flag("tables"), Flag("out")),
    ),
    Command(
        "draw-coverage",
        "Draw the share of the experts that decode steps read.",
        "slimwise.report.measured.figures.run:draw_coverage_figure",
        "slimwise.report.config:ReportConfig",
        (Flag("coverage"), Flag("out")),
    ),
    Command(
        "write-throughput-tables",
        "Write the tables of served throughput.",
        "slimwise.report.served.tables:write_throughput_tables",
        "slimwise.report.config:ReportConfig",
        (Flag("rows", many=True), Flag("accuracy"), Flag("paper"), Flag("out")),
    ),
    Command(
        "draw-throughput-figures",
        "Draw the figures of served throughput.",
        "slimwise.report.served.figures:draw_throughput_figures",
        "slimwise.report.config:ReportConfig",
        (Flag("tables"), Flag("out")),
    ),
    Command(
        "record-study",
        "Write the study's last file: configuration and digests of its products.",
        "slimwise.study_record:record_study",
        "slimwise.config:StudyConfig",
        (Flag("products", many=True), Flag("out")),
    ),
)


def _parse(target: str, text: str) -> Any:
    from slimwise.config import parse_slice

    return parse_slice(_load(target), text)


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)
