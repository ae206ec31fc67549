"""How pruned checkpoints are written."""

from pydantic import Field

from slimwise.stage_config import StageConfig


class ExportConfig(StageConfig):
    """Sizes that shape the written files."""

    max_shard_gib: float = Field(
        default=4.0, gt=0, description="Upper size of a written shard, GiB."
    )
    num_threads: int = Field(
        default=4,
        ge=1,
        description="Shards written at the same time: the disk works for one while another is "
        "hashed.",
    )
    expert_parallel_size: int = Field(
        default=1,
        ge=1,
        description="GPUs that a server will spread each layer's experts over; warns of an uneven "
        "split.",
    )
