"""Which keep sets the study makes."""

from typing import Annotated

from pydantic import Field

from slimwise.core.vocabulary import Criterion
from slimwise.stage_config import StageConfig


class SelectionConfig(StageConfig):
    """Criteria and counts, a keep set for each pair."""

    criteria: tuple[Criterion, ...] = Field(
        default=(Criterion.MASS, Criterion.EAN, Criterion.REAP),
        min_length=1,
        description="How experts are ranked, one decoder each and each count. SlimWise, table 1.",
    )
    num_kept: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        min_length=1,
        description="Experts kept per layer (m'), one decoder each. SlimWise, table 2.",
    )

    def only(self, criterion: str, num_kept: int | str) -> "SelectionConfig":
        """The slice of one decoder, which stays the same when others join the study."""
        return self.model_copy(
            update={"criteria": (Criterion(criterion),), "num_kept": (int(num_kept),)}
        )
