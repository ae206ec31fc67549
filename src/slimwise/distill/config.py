"""How pruned decoders are distilled."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from slimwise.artifacts.chat_row import folder_files
from slimwise.core.vocabulary import Criterion, Distillation
from slimwise.stage_config import StageConfig

Rule = Literal[Distillation.UNIFORM, Distillation.ZERO]
Route = Literal["one_pass", "cached"]

_DECODERS = {"rules", "criteria", "num_kept", "decoders"}
_SAME_RESULT = {
    "embedded",
    "micro_batch_tokens",
    "logit_chunk_tokens",
    "route",
    "checkpoint_layers",
    "device",
    "checkpoint_every_steps",
}


class DistillationConfig(StageConfig):
    """Decoders, data, recipe, and what fits in memory."""

    rules: tuple[Rule, ...] = Field(
        default=(), description="Split rules, one more decoder each; none are distilled if empty."
    )
    criteria: tuple[Criterion, ...] | None = Field(
        default=None, description="Whose decoders are distilled; all of the selection's if null."
    )
    num_kept: tuple[Annotated[int, Field(ge=1)], ...] | None = Field(
        default=None, description="Whose decoders are distilled; all of the selection's if null."
    )
    decoders: tuple[str, ...] | None = Field(
        default=None,
        description="Distilled decoders by name, such as reap-m128-kd_uniform, where not every "
        "rule, criterion and count is wanted; rules is then empty.",
    )
    embedded: bool = Field(
        default=True,
        description="Take trained tensors that ship with the miniature where they were trained "
        "from the same model, keep set and settings; train whatever is not there.",
    )
    dataset: Literal["mini_tasks", "chat_mixture"] = Field(
        default="mini_tasks",
        description="The miniature's tasks, or open-perfectblend with APIGen-MT. SlimWise, Distil.",
    )
    chat_data: str = Field(
        default="mlabonne/open-perfectblend",
        description="Hub id, or a local folder of JSON lines or parquet, of chat rows: messages "
        "as the chat API has them, or conversations as this data set has.",
    )
    agent_data: str = Field(
        default="Salesforce/APIGen-MT-5k",
        description="Hub id, or a local folder of JSON lines or parquet, of trajectories.",
    )
    agent_share: float = Field(
        default=0.35, ge=0, le=1, description="Share of sequences from agent_data. SlimWise, Data."
    )
    max_sequence_tokens: int = Field(
        default=12288,
        ge=16,
        description="Sequence limit, tokens; longer ones are drawn again. SlimWise, Data.",
    )
    steps: int = Field(default=8000, ge=1, description="Optimiser steps. SlimWise, Distil.")
    batch_sequences: int = Field(
        default=8, ge=1, description="Sequences a step, over all processes. SlimWise, Distil."
    )
    micro_batch_tokens: int = Field(
        default=12288, ge=16, description="Tokens a forward pass, with padding."
    )
    learning_rate: float = Field(
        default=1e-4, gt=0, description="AdamW peak; linear to zero. SlimWise, Distil."
    )
    router_lr_ratio: float = Field(
        default=0.1, gt=0, description="Learning rate of routers / of the rest. SlimWise, Distil."
    )
    warmup_steps: int = Field(default=100, ge=0, description="Linear warm-up, steps.")
    weight_decay: float = Field(
        default=0.0, ge=0, description="AdamW weight decay, on matrices only."
    )
    clip_norm: float = Field(default=1.0, gt=0, description="Gradient norm limit.")
    alpha: float = Field(
        default=0.1, ge=0, le=1, description="Weight of the cross entropy. SlimWise, Distil."
    )
    num_top: int = Field(
        default=64, ge=1, description="Teacher tokens with a bucket each. SlimWise, Distil."
    )
    logit_chunk_tokens: int = Field(
        default=2048, ge=1, description="Positions whose logits are in memory at a time."
    )
    route: Route = Field(
        default="one_pass",
        description="The student reads the prefix too, or continues from the teacher's cache.",
    )
    checkpoint_layers: bool = Field(
        default=False, description="Compute layers again in the backward pass to save memory."
    )
    seed: int = Field(default=0, description="Seed of the second shared experts and the data.")
    dtype: Literal["float32", "bfloat16"] = Field(
        default="bfloat16", description="Compute type; trained weights are float32."
    )
    device: Literal["auto", "cpu", "cuda"] = Field(default="auto", description="Where to distil.")
    checkpoint_every_steps: int = Field(
        default=50, ge=1, description="Resume point interval, steps."
    )

    def only(self, rule: str) -> "DistillationConfig":
        """The slice of one decoder, which stays the same when others are distilled too."""
        nothing = dict.fromkeys(("criteria", "num_kept", "decoders"))
        return self.model_copy(update={**nothing, "rules": (Distillation(rule),)})

    def data_files(self) -> list[Path]:
        """What local folders hold of the data now; none of what comes from the hub."""
        if self.dataset == "mini_tasks":
            return []
        agent = folder_files(self.agent_data) if self.agent_share else []
        return folder_files(self.chat_data) + agent

    def recipe(self) -> dict[str, Any]:
        """The keys, beside the seed, that shape what is trained, as JSON values.

        The others name the decoders, or change memory and speed only.
        """
        return self.model_dump(mode="json", exclude={"seed", *_DECODERS, *_SAME_RESULT})
