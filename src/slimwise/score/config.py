"""How routing statistics become scores."""

from pydantic import Field, field_validator

from slimwise.core.vocabulary import ScoringGate
from slimwise.stage_config import StageConfig


class ScoreConfig(StageConfig):
    """The gate, and the weight of each component."""

    gate: ScoringGate = Field(
        default=ScoringGate.MODEL,
        description="Gate in Mass and REAP: the weight the model multiplies with, or the router "
        "probability before top-k renormalisation (REAP code before March 2026).",
    )
    component_weights: dict[str, float] = Field(
        default_factory=dict,
        description="How often the tokens of a calibration component count; once if not named. "
        "Takes no new calibration.",
    )

    @field_validator("component_weights")
    @classmethod
    def _weights_are_counts(cls, weights: dict[str, float]) -> dict[str, float]:
        for component, weight in weights.items():
            if not 0 <= weight < float("inf"):
                raise ValueError(
                    f"component_weights.{component} = {weight}: expected a number >= 0"
                )
        return weights
