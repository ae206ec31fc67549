"""What the tuner of the MoE kernel works through."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class TuningPlan(BaseModel):
    """The shapes and batches to tune, and how candidates are timed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model_config_file: Path = Field(description="config.json of the full model.")
    num_experts: tuple[int, ...] = Field(
        min_length=1, description="Experts a layer of each set of weights, the most urgent first."
    )
    batches: tuple[int, ...] = Field(
        min_length=1,
        description="Tokens in a step. vLLM takes the nearest of them for any other number, so "
        "that a prefill step needs a large one.",
    )
    skew_strength: float = Field(
        default=0.166, ge=0, description="Spread of expert popularity; 0: uniform routing."
    )
    num_routings: int = Field(
        default=8, gt=0, description="Draws of routed experts, each read in turn by a CUDA graph."
    )
    finalists: int = Field(
        default=6, gt=0, description="Fastest candidates of the first pass, timed with care."
    )
    rounds: int = Field(default=12, gt=0, description="Careful timings of each finalist, in turns.")
    compile_processes: int = Field(
        default=12, gt=0, description="Processes that compile candidates beforehand."
    )
    seed: int = 0
