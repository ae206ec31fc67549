"""What the speed of distillation is measured on."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from slimwise.backbones.published import PublishedShape
from slimwise.distill.config import DistillationConfig, Route
from slimwise.stage_config import StageConfig


class Implementation(StrEnum):
    """How distillation is done.

    Two copies is the straightforward way: a second whole model, full logits of both, every
    position read by both, and linear attention as the library has it.
    """

    SLIMWISE = "slimwise"
    TWO_COPIES = "two_copies"


class DistillSpeedConfig(StageConfig):
    """One measurement: a shape, an implementation, and the sequences of a step."""

    shape: PublishedShape = Field(description="Published shape, filled with random weights.")
    num_layers: int | None = Field(
        default=None, ge=1, description="First layers only; all if null."
    )
    implementation: Implementation = Field(
        default=Implementation.SLIMWISE, description="This project's way, or the yardstick."
    )
    blocked_delta_rule: bool = Field(
        default=True, description="Linear attention by our scan; two_copies never has it."
    )
    tensor_float32: bool = Field(
        default=False, description="Products of float32 matrices with 10 bits of mantissa."
    )
    kept_share: float = Field(default=0.5, gt=0, le=1, description="Experts kept a layer.")
    routes: tuple[Route, ...] = Field(
        default=("cached", "one_pass"),
        min_length=1,
        description="In turn, in place of distillation.route; two_copies has one way only.",
    )
    sequence_tokens: tuple[Annotated[int, Field(ge=16)], ...] = Field(
        default=(12288,), min_length=1, description="Lengths to measure, tokens a sequence."
    )
    step_tokens: int = Field(
        default=6 * 12288, ge=16, description="Tokens of the timed step, at least one sequence."
    )
    profile: bool = Field(
        default=False,
        description="Write also where one sequence of the first length spends its time.",
    )
    training_tokens: int = Field(
        default=282_000_000, ge=1, description="Tokens of a whole distillation. SlimWise, Data."
    )
    distillation: DistillationConfig = Field(
        default_factory=lambda: DistillationConfig(checkpoint_layers=True),
        description="Batching and loss, as a study would set them.",
    )
    seed: int = Field(default=0, description="Seed of weights and tokens.")
