"""The base of every stage's slice of the configuration."""

from pydantic import BaseModel, ConfigDict


class StageConfig(BaseModel):
    """A frozen slice that refuses unknown keys; descriptions give unit and source."""

    model_config = ConfigDict(frozen=True, extra="forbid")
