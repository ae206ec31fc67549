"""How pruned checkpoints are written."""

from pydantic import Field

from slimwise.stage_config import StageConfig


class ExportConfig(StageConfig):
    max_shard_gib: float = Field(
        default=4.0, gt=0, description="Upper size of a written shard, GiB."
    )
