"""Training of the miniature backbone."""

from typing import Literal

from pydantic import Field

from slimwise.stage_config import StageConfig


class TrainConfig(StageConfig):
    """Data, recipe, and where to train."""

    steps: int = Field(default=1200, ge=1, description="Optimiser steps.")
    batch_sequences: int = Field(default=384, ge=1, description="Sequences a step.")
    micro_batch_sequences: int = Field(
        default=192,
        ge=1,
        description="Sequences a forward pass; those of a step are sorted by length.",
    )
    max_sequence_tokens: int = Field(
        default=256, ge=64, description="Sequence limit, tokens; longer ones are drawn again."
    )
    learning_rate: float = Field(default=3e-3, gt=0, description="AdamW peak; linear to zero.")
    warmup_steps: int = Field(default=200, ge=0, description="Linear warm-up, steps.")
    weight_decay: float = Field(
        default=0.05, ge=0, description="AdamW weight decay, on matrices only."
    )
    clip_norm: float = Field(default=1.0, gt=0, description="Gradient norm limit.")
    aux_loss_weight: float = Field(default=1e-3, ge=0, description="Router load-balancing loss.")
    background_share: float = Field(
        default=0.5,
        ge=0,
        lt=1,
        description="Share of sequences from families calibration never sees.",
    )
    seed: int = Field(default=0, description="Seed of initialisation and data order.")
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="Where to train.")
    checkpoint_every_steps: int = Field(
        default=50, ge=1, description="Resume point interval, steps."
    )
