"""How decoders are served, by one server or by one for each phase."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from slimwise.core.vocabulary import Phase
from slimwise.stage_config import StageConfig

_WAITING = ("start_timeout_s", "request_timeout_s", "outage_timeout_s", "host", "port")
_PLACES = ("prefill_port", "decode_port", "kv_host")

Address = Annotated[str, Field(pattern=r"^https?://[^/\s]+$")]


class ServingConfig(StageConfig):
    """One server: its limits, memory, threads, timeouts and address."""

    dtype: Literal["auto", "bfloat16", "float32"] = Field(
        default="bfloat16", description="Type of weights and KV; auto = that of the checkpoint."
    )
    max_model_len_tokens: int = Field(ge=16, description="Prompt plus output limit, tokens.")
    max_num_seqs: int = Field(default=128, ge=1, description="Sequences in one engine step.")
    kv_cache_gib: float = Field(default=4.0, gt=0, description="KV cache on CPU, GiB.")
    gpus: int = Field(default=1, ge=1, description="GPUs of one server, its tensor parallel size.")
    gpu_memory_share: float = Field(
        default=0.9, gt=0, le=1, description="Share of a GPU's memory that a server takes."
    )
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
    port: int = Field(default=0, ge=0, le=65535, description="Port to listen on; 0 = a free one.")
    extra_args: tuple[str, ...] = Field(default=(), description="Further vLLM server arguments.")

    def without_waiting(self) -> "ServingConfig":
        """The slice that says how answers are computed, wherever and however long one waits."""
        return self.by_default(*_WAITING)


class DisaggregationConfig(StageConfig):
    """Where the servers of both phases run, and how they exchange KV."""

    prefill_urls: tuple[Address, ...] = Field(
        default=(),
        description="Addresses, http://host:port, of prefill servers that run elsewhere; none = "
        "start one here.",
    )
    decode_urls: tuple[Address, ...] = Field(
        default=(),
        description="Addresses, http://host:port, of decode servers that run elsewhere; none = "
        "start one here.",
    )
    prefill_port: int = Field(
        default=0, ge=0, le=65535, description="Port of a prefill server here; 0 = a free one."
    )
    decode_port: int = Field(
        default=0, ge=0, le=65535, description="Port of a decode server here; 0 = a free one."
    )
    kv_host: str = Field(
        default="127.0.0.1", description="Address at which other servers reach this host's KV."
    )
    ucx_transports: str | None = Field(
        default=None,
        description="UCX_TLS of NIXL; null = tcp,shm,self on CPU and what UCX picks on GPU.",
    )
    shares_gpus: bool = Field(
        default=False,
        description="Both servers on the same GPUs; their gpu_memory_share must then fit.",
    )
    prefill_args: tuple[str, ...] = Field(
        default=(), description="Further vLLM arguments of the prefill server."
    )
    decode_args: tuple[str, ...] = Field(
        default=(), description="Further vLLM arguments of the decode server."
    )

    @model_validator(mode="after")
    def _servers_elsewhere_are_set_up_there(self) -> Self:
        for phase in Phase:
            port, arguments = f"{phase}_port", f"{phase}_args"
            if getattr(self, f"{phase}_urls") and (getattr(self, port) or getattr(self, arguments)):
                raise ValueError(
                    f"{phase}_urls are of servers that run elsewhere, which {port} and "
                    f"{arguments} do not reach: leave these out"
                )
        return self

    def without_places(self) -> "DisaggregationConfig":
        """The slice that says how answers are computed, whichever ports and address are free."""
        return self.by_default(*_PLACES)
