"""What the speed of exporting is measured on."""

from pydantic import Field

from slimwise.backbones.published import PublishedShape
from slimwise.stage_config import StageConfig


class ExportSpeedConfig(StageConfig):
    """One measurement: a shape, the experts kept, and how often."""

    shape: PublishedShape = Field(description="Published shape, filled with random bytes.")
    num_layers: int | None = Field(
        default=None, ge=1, description="First layers only; all if null."
    )
    num_kept: int = Field(ge=1, description="Experts kept in each layer.")
    shard_gib: float = Field(default=4.0, gt=0, description="Size of the source's files, GiB.")
    repeats: int = Field(default=3, ge=1, description="Exports and copies, in turn.")
