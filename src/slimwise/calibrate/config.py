"""What the experts are observed on."""

from typing import Literal

from pydantic import Field

from slimwise.stage_config import StageConfig


class CalibrationConfig(StageConfig):
    dataset: Literal["mini_tasks"] = Field(default="mini_tasks", description="Calibration mixture.")
    components: tuple[str, ...] = Field(
        default=("maths", "code", "tools"),
        description="Mixture components, observed in this order.",
    )
    sequences_per_component: int = Field(
        default=4096, ge=1, description="Sequences of each component. REAP mixture: 4,096."
    )
    max_sequence_tokens: int = Field(
        default=2048, ge=16, description="Sequence limit. REAP: 2,048."
    )
    batch_tokens: int = Field(
        default=16384, ge=16, description="Tokens a forward pass, with padding."
    )
    seed: int = Field(default=0, description="Seed of the drawn sequences.")
    dtype: Literal["float32", "bfloat16"] = Field(default="bfloat16", description="Compute type.")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="Where to observe.")
    save_every_batches: int = Field(default=50, ge=1, description="Resume point interval, batches.")
