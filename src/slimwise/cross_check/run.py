"""Sets our scores of the full decoder beside lm-eval's, on the same items and server."""

import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pandas as pd

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.grades import read_grades
from slimwise.artifacts.tables import PROVENANCE_COLUMNS, write_table
from slimwise.backbones.registry import backbone_for
from slimwise.benchmarks.base import Answer, BenchmarkItem
from slimwise.benchmarks.registry import benchmark_named
from slimwise.benchmarks.settings import DataSettings, GradingLimits
from slimwise.core.vocabulary import Decoding
from slimwise.cross_check.config import CrossCheckConfig
from slimwise.cross_check.lm_eval_run import LmEvalResult, run_lm_eval
from slimwise.cross_check.tasks import write_task
from slimwise.engine.config import ServingConfig
from slimwise.engine.deployment import serve
from slimwise.errors import ArtifactError
from slimwise.provenance import current_provenance
from slimwise.stage_config import StageConfig
from slimwise.work_directory import work_directory

COLUMNS = ("benchmark", "answers", "scorer", "num_items", "accuracy")
_OURS, _THEIRS = "slimwise", "lm_eval"
_DIGITS = 4
_log = logging.getLogger(__name__)


class Asked(Protocol):
    """The part of the evaluation's slice that this stage reads."""

    @property
    def budget_tokens(self) -> int:
        """Output limit, tokens."""
        ...

    @property
    def concurrency(self) -> int:
        """Requests in flight."""
        ...

    @property
    def thinking(self) -> bool:
        """Whether chat templates open a thought."""
        ...

    def data_settings(self, benchmark: str) -> DataSettings:
        """The part that concerns one benchmark's items."""
        ...


@dataclass(frozen=True)
class _Checked:
    """A benchmark's items, and how many of them we graded as right."""

    name: str
    items: Sequence[BenchmarkItem]
    num_right: int


def run(
    config: CrossCheckConfig,
    *,
    evaluation: Asked,
    grading: StageConfig,
    serving: ServingConfig,
    backbone: Path,
    grades: Path,
    out: Path,
    work: Path,
) -> None:
    """Write the table of both scores, and of our score of the answers that lm-eval was given."""
    record = read_backbone_record(backbone)
    graded = read_grades(grades)
    checked = [_checked(name, config, evaluation, graded) for name in config.benchmarks]
    with work_directory(work) as folder:
        shutil.rmtree(folder / "results", ignore_errors=True)
        for name in config.benchmarks:
            settings = evaluation.data_settings(name)
            write_task(name, settings.num_shots, settings.folder, folder)
        with serve(record.model, serving, folder / "server.log") as base_url:
            results = run_lm_eval(
                base_url,
                config.benchmarks,
                num_items=config.num_items,
                budget_tokens=evaluation.budget_tokens,
                concurrency=evaluation.concurrency,
                template_words={"enable_thinking": evaluation.thinking},
                thought_end=backbone_for(record.model_type).thought_end,
                timeout_s=serving.request_timeout_s,
                folder=folder,
            )
        limits = GradingLimits(**grading.model_dump(), cache=folder)
        rows = [row for each in checked for row in _rows(each, results[each.name], limits)]
    _write(out, rows)


def _checked(
    name: str, config: CrossCheckConfig, evaluation: Asked, grades: pd.DataFrame
) -> _Checked:
    items = benchmark_named(name, evaluation.data_settings(name)).items(config.num_items)
    ours = grades[(grades["benchmark"] == name) & (grades["decoding"] == Decoding.GREEDY)]
    correct = dict(zip(ours["item_id"], ours["correct"], strict=True))
    missing = [item.item_id for item in items if item.item_id not in correct]
    if missing:
        raise ArtifactError(
            f"the grades of the full decoder hold no greedy answer to {name} item {missing[0]} and "
            f"{len(missing) - 1} others. Set evaluation.greedy, and cross_check.num_items to no "
            "more than evaluation.num_items."
        )
    return _Checked(name, items, sum(bool(correct[item.item_id]) for item in items))


def _rows(checked: _Checked, result: LmEvalResult, limits: GradingLimits) -> Iterator[dict]:
    num_items = len(checked.items)
    scores = {
        (_OURS, _OURS): checked.num_right / num_items,
        (_THEIRS, _OURS): _share_right(checked, result.answers, limits),
        **{(_THEIRS, f"{_THEIRS} {key}"): value for key, value in result.metrics.items()},
    }
    for (answers, scorer), accuracy in scores.items():
        yield dict(zip(COLUMNS, (checked.name, answers, scorer, num_items, accuracy), strict=True))


def _share_right(checked: _Checked, answers: Sequence[str], limits: GradingLimits) -> float:
    """Our verdict on the answers that lm-eval was given; it does not tell which were cut."""
    references = [item.reference for item in checked.items]
    with benchmark_named(checked.name).grader(references, limits) as grade:
        verdicts = [
            grade(Answer(text), reference)
            for text, reference in zip(answers, references, strict=True)
        ]
    return sum(verdict.correct for verdict in verdicts) / len(verdicts)


def _write(out: Path, rows: Sequence[dict]) -> None:
    provenance = current_provenance()
    origin = {column: getattr(provenance, column) for column in PROVENANCE_COLUMNS}
    frame = pd.DataFrame(rows, columns=list(COLUMNS)).assign(**origin)
    write_table(out, frame, COLUMNS, digits=_DIGITS)
    for row in rows:
        _log.info("%(benchmark)s: answers of %(answers)s, by %(scorer)s: %(accuracy).3f", row)
