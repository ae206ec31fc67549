"""How saved answers are graded."""

from slimwise.stage_config import StageConfig


class GradeConfig(StageConfig):
    """Empty: what counts as right belongs to each benchmark, and is no matter of taste."""
