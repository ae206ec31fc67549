"""What the decoders are asked, and how they decode."""

from typing import Literal

from pydantic import Field

from slimwise.core.vocabulary import ServingMode
from slimwise.stage_config import StageConfig


class EvaluationConfig(StageConfig):
    benchmarks: tuple[str, ...] = Field(min_length=1, description="Benchmark names.")
    num_items: int = Field(default=500, ge=1, description="Items a benchmark. GSM8K: first 500.")
    sampled_runs: int = Field(default=3, ge=0, description="Runs with sampling, one seed each.")
    greedy: bool = Field(default=True, description="One more run, greedy. SlimWise, figure 5.")
    temperature: float = Field(
        default=1.0, gt=0, description="Of sampled runs. SlimWise, Evaluate."
    )
    top_p: float = Field(
        default=0.95, gt=0, le=1, description="Of sampled runs. SlimWise, Evaluate."
    )
    budget_tokens: int = Field(
        default=32768, ge=1, description="Output limit, tokens. SlimWise, Evaluate."
    )
    colocated_modes: tuple[Literal[ServingMode.SLIMWISE, ServingMode.REVERSE], ...] = Field(
        default=(),
        description="Modes of each pruned decoder beside full and pruned, all served by one "
        "server of the full model with the keep set as a pool. SlimWise, table 3.",
    )
    concurrency: int = Field(default=64, ge=1, description="Requests in flight.")
    seed: int = Field(default=0, description="Run r draws the seed of each request from seed + r.")
