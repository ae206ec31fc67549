"""How saved answers are graded."""

from pydantic import Field

from slimwise.stage_config import StageConfig


class GradeConfig(StageConfig):
    """Limits only: what counts as right belongs to each benchmark, and is no matter of taste."""

    workers: int = Field(default=2, ge=1, description="Answers graded at once, a core each.")
    maths_timeout_s: float = Field(
        default=10.0, gt=0, description="Seconds that comparing one answer may take."
    )
    program_time_s: int = Field(
        default=120,
        ge=1,
        description="Seconds that a program may run on all inputs of its tests, wall-clock and CPU "
        "alike. HumanEval+ and MBPP+ need most of it on a busy machine.",
    )
    program_memory_gib: float = Field(
        default=6.0, gt=0, description="Address space of a program, GiB. MBPP+ needs it."
    )

    def without_haste(self) -> "GradeConfig":
        """The slice that says what a verdict may cost, however many are found at a time."""
        return self.by_default("workers")
