"""What the speed of exporting is measured on."""

from pydantic import Field

from slimwise.stage_config import StageConfig


class ExportSpeedConfig(StageConfig):
    num_layers: int = Field(
        default=12, ge=1, description="Layers of the Qwen3.6-35B-A3B shape; 12 are about 21 GiB."
    )
    num_kept: int = Field(default=128, ge=8, description="Experts kept of 256 in each layer.")
    shard_gib: float = Field(default=4.0, gt=0, description="Size of the source's files, GiB.")
    repeats: int = Field(default=3, ge=1, description="Exports and copies, in turn.")
