"""How routing statistics become scores."""

from typing import Literal

from pydantic import Field

from slimwise.stage_config import StageConfig


class ScoreConfig(StageConfig):
    gate: Literal["model", "softmax"] = Field(
        default="model",
        description="Gate in Mass and REAP: the weight the model multiplies with, or the router "
        "probability before top-k renormalisation (REAP code before March 2026).",
    )
