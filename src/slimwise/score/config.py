"""How routing statistics become scores."""

from pydantic import Field

from slimwise.core.vocabulary import ScoringGate
from slimwise.stage_config import StageConfig


class ScoreConfig(StageConfig):
    gate: ScoringGate = Field(
        default=ScoringGate.MODEL,
        description="Gate in Mass and REAP: the weight the model multiplies with, or the router "
        "probability before top-k renormalisation (REAP code before March 2026).",
    )
