"""Training of the miniature backbone."""

from typing import Literal

from pydantic import Field

from slimwise.stage_config import StageConfig


class TrainConfig(StageConfig):
    steps: int = Field(800, ge=1, description="Optimiser steps.")
    batch_sequences: int = Field(384, ge=1, description="Sequences a step.")
    micro_batch_sequences: int = Field(384, ge=1, description="Sequences a forward pass.")
    max_sequence_tokens: int = Field(256, ge=64, description="Longer sequences are drawn again.")
    learning_rate: float = Field(3e-3, gt=0, description="AdamW peak; linear to zero.")
    warmup_steps: int = Field(200, ge=0, description="Linear warm-up, steps.")
    weight_decay: float = Field(0.05, ge=0, description="On matrices only.")
    clip_norm: float = Field(1.0, gt=0, description="Gradient norm limit.")
    aux_loss_weight: float = Field(1e-3, ge=0, description="Router load-balancing loss.")
    background_share: float = Field(
        0.5, ge=0, lt=1, description="Share of sequences from families calibration never sees."
    )
    seed: int = Field(0, description="Seed of initialisation and data order.")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="Where to train.")
    checkpoint_every_steps: int = Field(50, ge=1, description="Resume point interval, steps.")
