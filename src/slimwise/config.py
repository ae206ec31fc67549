"""A whole study's configuration: one slice per stage, checked before anything runs."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import Field, ValidationError

from slimwise.calibrate.config import CalibrationConfig
from slimwise.core.vocabulary import DecoderId
from slimwise.engine.config import ServingConfig
from slimwise.errors import ConfigError
from slimwise.export.config import ExportConfig
from slimwise.generate.config import EvaluationConfig
from slimwise.inspect.config import BackboneConfig
from slimwise.report.config import ReportConfig
from slimwise.score.config import ScoreConfig
from slimwise.select.config import SelectionConfig
from slimwise.stage_config import StageConfig
from slimwise.train.config import TrainConfig

Slice = TypeVar("Slice", bound=StageConfig)


class StudyConfig(StageConfig):
    """Every slice of a study, in pipeline order."""

    study: str = Field(
        pattern=r"^[A-Za-z0-9_.-]+$", description="Name of the study, its folder under results/."
    )
    backbone: BackboneConfig
    training: TrainConfig = TrainConfig()
    calibration: CalibrationConfig = CalibrationConfig()
    scoring: ScoreConfig = ScoreConfig()
    selection: SelectionConfig
    export: ExportConfig = ExportConfig()
    serving: ServingConfig
    evaluation: EvaluationConfig
    report: ReportConfig = ReportConfig()

    def decoders(self) -> tuple[DecoderId, ...]:
        """The full decoder, then every pruned one, in table order."""
        pruned = (
            DecoderId(criterion, num_kept)
            for criterion in self.selection.criteria
            for num_kept in self.selection.num_kept
        )
        return (DecoderId(), *pruned)


def load_study(raw: Mapping[str, Any]) -> StudyConfig:
    """The checked study; ConfigError names each bad key with its value and limit."""
    try:
        return StudyConfig.model_validate(raw)
    except ValidationError as failure:
        raise ConfigError(_explain(failure)) from failure


def slice_json(config: StageConfig) -> str:
    """A slice as one line of JSON with sorted keys, as it travels on the command line."""
    return json.dumps(config.model_dump(mode="json"), sort_keys=True)


def parse_slice(model: type[Slice], text: str) -> Slice:
    """The slice that the JSON text holds; ConfigError names each bad key."""
    try:
        return model.model_validate_json(text)
    except ValidationError as failure:
        raise ConfigError(_explain(failure)) from failure


def _explain(failure: ValidationError) -> str:
    lines = [
        f"{'.'.join(map(str, error['loc']))} = {error['input']!r}: {error['msg']}"
        for error in failure.errors()
    ]
    return "configuration refused: " + "; ".join(lines) + ". See config/README.md for every key."
