"""Which model the study prunes."""

from typing import Annotated

from pydantic import Field

from slimwise.stage_config import StageConfig


class BackboneConfig(StageConfig):
    """Where the model lies, its name in tables, and what it must score."""

    model: str = Field(
        description="'embedded' (the committed miniature), 'trained' (the miniature, trained by "
        "this study), a local folder, or a hub id."
    )
    revision: str | None = Field(
        default=None, description="Hub revision; the default branch if null."
    )
    name: str = Field(description="Backbone's name in tables.")
    accuracy_floors: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(
        default_factory=dict,
        description="Least greedy accuracy of the full model, fraction by benchmark, below which "
        "the study prunes nothing.",
    )

    def without_floors(self) -> "BackboneConfig":
        """The slice that says which model it is, whatever it must score."""
        return self.model_copy(update={"accuracy_floors": {}})
