"""A whole study's configuration: one slice per stage, checked before anything runs."""

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeGuard, TypeVar

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from slimwise.benchmarks.registry import benchmark_named
from slimwise.calibrate.config import CalibrationConfig
from slimwise.core.vocabulary import DecoderId, Decoding, Distillation, ServingMode
from slimwise.cross_check.config import CrossCheckConfig
from slimwise.distill.config import DistillationConfig
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.errors import ConfigError
from slimwise.export.config import ExportConfig
from slimwise.generate.config import EvaluationConfig
from slimwise.generate.coverage.config import CoverageConfig
from slimwise.grade.config import GradeConfig
from slimwise.inspect.config import BackboneConfig
from slimwise.report.config import ReportConfig
from slimwise.resources import ResourceConfig
from slimwise.score.config import ScoreConfig
from slimwise.select.config import SelectionConfig
from slimwise.stage_config import StageConfig
from slimwise.sweep.config import SweepConfig, SweptDecoder
from slimwise.train.config import TrainConfig

Slice = TypeVar("Slice", bound=StageConfig)
Named = TypeVar("Named")


class StudyConfig(StageConfig):
    """Every slice of a study, in pipeline order."""

    study: str = Field(
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9_.-]*$",
        description="Name of the study, its folder under results/.",
    )
    backbone: BackboneConfig = Field(description="Which model the study prunes.")
    training: TrainConfig = Field(
        default_factory=TrainConfig, description="Training of the miniature backbone."
    )
    calibration: CalibrationConfig = Field(
        default_factory=CalibrationConfig, description="What the experts are observed on."
    )
    scoring: ScoreConfig = Field(
        default_factory=ScoreConfig, description="How routing statistics become scores."
    )
    selection: SelectionConfig = Field(description="Which keep sets the study makes.")
    export: ExportConfig = Field(
        default_factory=ExportConfig, description="How pruned checkpoints are written."
    )
    distillation: DistillationConfig = Field(
        default_factory=DistillationConfig, description="How pruned decoders are distilled."
    )
    serving: ServingConfig = Field(description="How decoders are served.")
    disaggregation: DisaggregationConfig = Field(
        default_factory=DisaggregationConfig,
        description="How prefill and decode are served by a server each.",
    )
    evaluation: EvaluationConfig = Field(
        description="What the decoders are asked, and how they decode."
    )
    grading: GradeConfig = Field(
        default_factory=GradeConfig, description="How saved answers are graded."
    )
    coverage: CoverageConfig = Field(
        default_factory=CoverageConfig,
        description="At which batches the experts of a decode step are counted.",
    )
    throughput: SweepConfig = Field(
        default_factory=SweepConfig, description="Loads that decoders are measured under."
    )
    cross_check: CrossCheckConfig = Field(
        default_factory=CrossCheckConfig, description="What lm-eval is asked to measure too."
    )
    report: ReportConfig = Field(
        default_factory=ReportConfig, description="How tables and figures look."
    )
    resources: ResourceConfig = Field(
        default_factory=ResourceConfig, description="What a job may ask of the machine."
    )

    @model_validator(mode="after")
    def _slices_agree(self) -> Self:
        unmeasured = set(self.backbone.accuracy_floors) - set(self.evaluation.benchmarks)
        if unmeasured:
            raise ValueError(
                f"backbone.accuracy_floors names {', '.join(sorted(unmeasured))}, which "
                f"evaluation.benchmarks ({', '.join(self.evaluation.benchmarks)}) does not measure"
            )
        if self.coverage.batches and not self.evaluation.greedy:
            raise ValueError("coverage.batches count greedy answers: set evaluation.greedy")
        if self.backbone.accuracy_floors and not self.evaluation.greedy:
            raise ValueError(
                "backbone.accuracy_floors are checked on greedy answers: set evaluation.greedy"
            )
        if 0 < self.resources.gpus < self.calibration.gpus_per_model:
            raise ValueError(
                f"calibration.gpus_per_model = {self.calibration.gpus_per_model} is above "
                f"resources.gpus = {self.resources.gpus}"
            )
        if self.evaluation.budget_tokens >= self.serving.max_model_len_tokens:
            raise ValueError(
                f"evaluation.budget_tokens = {self.evaluation.budget_tokens} leaves no room for a "
                f"prompt in serving.max_model_len_tokens = {self.serving.max_model_len_tokens}"
            )
        self._check_distillation()
        self._check_evaluation()
        self._check_throughput()
        self._check_cross_check()
        return self

    def _check_evaluation(self) -> None:
        asked = self.evaluation
        for name in asked.benchmarks:
            benchmark_named(name)
        if not asked.greedy and not asked.sampled_runs:
            raise ValueError("evaluation asks nothing: set greedy, or sampled_runs to 1 or more")
        if asked.floor_items is not None and asked.floor_items < asked.num_items:
            raise ValueError(
                f"evaluation.floor_items = {asked.floor_items} is below evaluation.num_items = "
                f"{asked.num_items}: the floor is checked on at least the items of the tables"
            )
        for mode, counts in asked.colocated_num_kept.items():
            unknown = [count for count in counts if count not in self.selection.num_kept]
            if unknown:
                raise ValueError(
                    f"evaluation.colocated_num_kept.{mode} names {unknown[0]}, which "
                    f"selection.num_kept ({', '.join(map(str, self.selection.num_kept))}) does not"
                )
        pruned = [str(decoder) for decoder in self.decoders()[1:] + self.distilled_decoders()]
        for name in asked.disaggregated_decoders:
            if name not in pruned:
                raise ValueError(
                    f"evaluation.disaggregated_decoders names {name}, which is none of the study's "
                    f"pruned decoders: {', '.join(pruned)}"
                )

    def _check_throughput(self) -> None:
        asked = self.throughput
        known = [*self.decoders(), *self.distilled_decoders()]
        swept = [
            each.decoder
            for each in _parsed("throughput.decoders", asked.decoders, SweptDecoder.parse)
        ]
        for decoder in swept:
            if decoder not in known:
                raise ValueError(
                    f"throughput.decoders names {decoder}, which is none of the study's "
                    f"decoders: {', '.join(map(str, known))}"
                )
        if swept and DecoderId() not in swept:
            raise ValueError(
                f"throughput.decoders ({', '.join(asked.decoders)}) lacks full, which others are "
                "compared with"
            )
        longest = asked.prompt_tokens + asked.output_tokens
        if asked.decoders and longest > self.serving.max_model_len_tokens:
            raise ValueError(
                f"throughput.prompt_tokens + throughput.output_tokens = {longest} is above "
                f"serving.max_model_len_tokens = {self.serving.max_model_len_tokens}"
            )

    def _check_cross_check(self) -> None:
        asked, checked = self.evaluation, self.cross_check
        for name in checked.benchmarks:
            if name not in asked.benchmarks or not asked.greedy:
                raise ValueError(
                    f"cross_check.benchmarks names {name}, of which evaluation has no greedy "
                    f"answers: add it to evaluation.benchmarks ({', '.join(asked.benchmarks)}) "
                    "and set evaluation.greedy"
                )
            num_asked = asked.items_asked(name, Decoding.GREEDY)
            if checked.num_items > num_asked:
                raise ValueError(
                    f"cross_check.num_items = {checked.num_items} is above the items that "
                    f"evaluation asks of {name}, {num_asked}"
                )

    def _check_distillation(self) -> None:
        for key in ("criteria", "num_kept"):
            known = getattr(self.selection, key)
            unknown = [word for word in getattr(self.distillation, key) or () if word not in known]
            if unknown:
                raise ValueError(
                    f"distillation.{key} names {unknown[0]}, which selection.{key} "
                    f"({', '.join(map(str, known))}) does not"
                )
        named = self.distillation.decoders
        if named is None:
            return
        if self.distillation.rules:
            raise ValueError(
                "distillation.decoders and distillation.rules both say what is distilled: give one"
            )
        pruned = self.decoders()
        for decoder in _parsed("distillation.decoders", named, DecoderId.parse):
            is_distilled = decoder.distilled is not Distillation.NONE
            if not is_distilled or replace(decoder, distilled=Distillation.NONE) not in pruned:
                raise ValueError(
                    f"distillation.decoders names {decoder}, which is no distilled decoder of the "
                    f"study's {', '.join(map(str, pruned[1:]))}: give one of these and a rule, as "
                    f"{pruned[1]}-kd_uniform"
                )

    def decoders(self) -> tuple[DecoderId, ...]:
        """The full decoder, then every pruned one, in table order."""
        pruned = (
            DecoderId(criterion, num_kept)
            for criterion in self.selection.criteria
            for num_kept in self.selection.num_kept
        )
        return (DecoderId(), *pruned)

    def distilled_decoders(self) -> tuple[DecoderId, ...]:
        """One decoder for each split rule and pruned decoder that the study distils."""
        chosen = self.distillation
        if chosen.decoders is not None:
            return tuple(map(DecoderId.parse, chosen.decoders))
        return tuple(
            DecoderId(criterion, num_kept, Distillation(rule))
            for criterion in chosen.criteria or self.selection.criteria
            for num_kept in chosen.num_kept or self.selection.num_kept
            for rule in chosen.rules
        )

    def standalone_decoders(self) -> tuple[DecoderId, ...]:
        """The decoders that are asked from a checkpoint of their own, in table order."""
        if ServingMode.PRUNED in self.evaluation.distilled_modes:
            return (*self.decoders(), *self.distilled_decoders())
        return self.decoders()

    def colocated_decoders(self) -> tuple[DecoderId, ...]:
        """The decoders that are asked from the full model, as a pool, in table order."""
        decoders = (*self.decoders(), *self.distilled_decoders())
        return tuple(decoder for decoder in decoders if self.evaluation.colocated_modes(decoder))

    def disaggregated_decoders(self) -> tuple[DecoderId, ...]:
        """The decoders that are asked with prefill and decode apart."""
        return tuple(map(DecoderId.parse, self.evaluation.disaggregated_decoders))


def _parsed(key: str, names: Sequence[str], parse: Callable[[str], Named]) -> Sequence[Named]:
    """What the names of that key say; ValueError names the key of one that says nothing."""
    try:
        return [parse(name) for name in names]
    except ConfigError as failure:
        raise ValueError(f"{key}: {failure}") from failure


def load_study(raw: Mapping[str, Any]) -> StudyConfig:
    """The checked study; ConfigError names each bad key with its value and limit."""
    try:
        return StudyConfig.model_validate(raw)
    except ValidationError as failure:
        raise ConfigError(_explain(failure, StudyConfig)) from failure


def slice_json(config: StageConfig) -> str:
    """A slice as one line of JSON with sorted keys, as it travels on the command line."""
    return json.dumps(config.model_dump(mode="json"), sort_keys=True)


def parse_slice(model: type[Slice], text: str) -> Slice:
    """The slice that the JSON text holds; ConfigError names each bad key."""
    try:
        return model.model_validate_json(text)
    except ValidationError as failure:
        raise ConfigError(_explain(failure, model)) from failure


def _explain(failure: ValidationError, model: type[StageConfig]) -> str:
    lines = [_explain_one(error, model) for error in failure.errors()]
    return "configuration refused: " + "; ".join(lines) + ". See config/README.md for every key."


def _explain_one(error: ErrorDetails, model: type[StageConfig]) -> str:
    key = ".".join(map(str, error["loc"]))
    match error["type"]:
        case "missing":
            return f"{key} is required and has no default"
        case "extra_forbidden":
            known = _keys_beside(error["loc"], model)
            near = difflib.get_close_matches(str(error["loc"][-1]), known, n=1)
            remedy = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
            return f"{key} = {error['input']!r}: unknown key ({remedy})"
        case "value_error":
            # The message of our own validators names keys and values itself.
            reason = error["msg"].removeprefix("Value error, ")
            return f"{key}: {reason}" if key else reason
        case _:
            return f"{key} = {error['input']!r}: {error['msg']}"


def _keys_beside(location: Sequence[int | str], model: type[StageConfig]) -> list[str]:
    """Field names of the slice in which the last part of the location was looked up."""
    for part in location[:-1]:
        field = model.model_fields.get(str(part))
        if field is None or not _is_slice(field.annotation):
            return []
        model = field.annotation
    return list(model.model_fields)


def _is_slice(annotation: Any) -> TypeGuard[type[StageConfig]]:
    return isinstance(annotation, type) and issubclass(annotation, StageConfig)
