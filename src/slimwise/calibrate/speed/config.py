"""What the speed of scoring is measured on."""

from pathlib import Path

from pydantic import Field

from slimwise.backbones.published import PublishedShape
from slimwise.stage_config import StageConfig


class ScoringSpeedConfig(StageConfig):
    """One measurement: a shape, an implementation, and the size of a forward pass."""

    shape: PublishedShape = Field(description="Published shape, filled with random weights.")
    num_layers: int | None = Field(
        default=None, ge=1, description="First layers only; all if null."
    )
    sequence_tokens: int = Field(default=2048, ge=16, description="Tokens a sequence.")
    batch_sequences: int = Field(default=8, ge=1, description="Sequences a forward pass.")
    reap_batch_sequences: int = Field(
        default=1,
        ge=1,
        description="Sequences a forward pass of the REAP observer, whose buffer of all experts' "
        "outputs grows with them.",
    )
    num_batches: int = Field(default=3, ge=1, description="Timed forward passes.")
    reap_source: Path | None = Field(
        default=None, description="src/ of a REAP checkout; its observer is skipped if null."
    )
    mixture_tokens: int = Field(
        default=6 * 4096 * 2048, ge=1, description="Size of the whole mixture, tokens."
    )
    seed: int = Field(default=0, description="Seed of weights and tokens.")
