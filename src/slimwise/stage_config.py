"""The base of every stage's slice of the configuration."""

from pydantic import BaseModel, ConfigDict


class StageConfig(BaseModel):
    """A frozen slice that refuses unknown keys; fields carry unit and source in their description."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=False)
