"""How decoders are served."""

from typing import Literal

from pydantic import Field

from slimwise.stage_config import StageConfig


class ServingConfig(StageConfig):
    dtype: Literal["auto", "bfloat16", "float32"] = Field(
        default="bfloat16", description="Weights and KV."
    )
    max_model_len_tokens: int = Field(ge=16, description="Prompt plus output limit, tokens.")
    max_num_seqs: int = Field(default=128, ge=1, description="Sequences in one engine step.")
    kv_cache_gib: float = Field(default=4.0, gt=0, description="KV cache on CPU, GiB.")
    gpu_memory_share: float = Field(default=0.9, gt=0, le=1, description="Share of a GPU's memory.")
    cpu_threads: int = Field(
        default=0, ge=0, description="OpenMP threads of a CPU engine; 0 = all cores."
    )
    enforce_eager: bool = Field(
        default=False, description="No CUDA graphs or compilation (set on CPU)."
    )
    start_timeout_s: int = Field(
        default=600, ge=1, description="Seconds until a server must be healthy."
    )
    request_timeout_s: int = Field(default=3600, ge=1, description="Seconds one request may take.")
    outage_timeout_s: int = Field(
        default=120, ge=0, description="Seconds to wait for a server that has gone to come back."
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    extra_args: tuple[str, ...] = Field(default=(), description="Further vLLM server arguments.")
