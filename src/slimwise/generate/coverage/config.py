"""At which batches the experts that a decode step reads are counted."""

from typing import Annotated

from pydantic import Field

from slimwise.stage_config import StageConfig


class CoverageConfig(StageConfig):
    """Batches, and how many steps stand for each."""

    batches: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        default=(), description="Sequences in a decode step; none if empty. SlimWise, figure 2."
    )
    num_steps: int = Field(default=200, ge=1, description="Decode steps drawn for each batch.")
    seed: int = Field(default=0, ge=0, description="Seed of the drawn steps.")
