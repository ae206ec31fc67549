"""What lm-eval is asked to measure too."""

from typing import Literal

from pydantic import Field

from slimwise.stage_config import StageConfig


class CrossCheckConfig(StageConfig):
    """Benchmarks and items that are asked twice."""

    benchmarks: tuple[Literal["gsm8k", "math_500"], ...] = Field(
        default=(),
        description="Benchmarks that lm-eval asks the full decoder too, greedily; none = no "
        "cross-check. Its code tasks would run answers outside a sandbox.",
    )
    num_items: int = Field(default=50, ge=1, description="First items of each benchmark.")
