"""What the decoders are asked, and how they decode."""

from pydantic import Field

from slimwise.stage_config import StageConfig


class EvaluationConfig(StageConfig):
    benchmarks: tuple[str, ...] = Field(min_length=1, description="Benchmark names.")
    num_items: int = Field(500, ge=1, description="Items a benchmark. GSM8K: first 500.")
    sampled_runs: int = Field(3, ge=0, description="Runs with sampling, one seed each.")
    greedy: bool = Field(True, description="One more run, greedy. SlimWise, figure 5.")
    temperature: float = Field(1.0, gt=0, description="Of sampled runs. SlimWise, Evaluate.")
    top_p: float = Field(0.95, gt=0, le=1, description="Of sampled runs. SlimWise, Evaluate.")
    budget_tokens: int = Field(32768, ge=1, description="Output limit, tokens. SlimWise, Evaluate.")
    concurrency: int = Field(64, ge=1, description="Requests in flight.")
    seed: int = Field(0, description="First seed; run r uses seed + r.")
