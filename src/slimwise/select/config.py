"""Which keep sets the study makes."""

from pydantic import Field

from slimwise.core.vocabulary import Criterion
from slimwise.stage_config import StageConfig


class SelectionConfig(StageConfig):
    criteria: tuple[Criterion, ...] = Field(
        (Criterion.MASS, Criterion.EAN, Criterion.REAP),
        min_length=1,
        description="SlimWise, table 1.",
    )
    num_kept: tuple[int, ...] = Field(
        min_length=1,
        description="Experts kept per layer (m'), one decoder each. SlimWise, table 2.",
    )
