"""Starts the in-process engine that a benchmark drives, and says what it is."""

import copy
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from slimwise_vllm.decode_bench.folders import (
    moe_shape,
    write_model_folder,
    write_popular_keep_set,
)
from slimwise_vllm.decode_bench.kernel_choice import TUNED_FOLDER
from slimwise_vllm.decode_bench.plan import BenchPlan, EnginePlan

_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_PLUGINS": "slimwise",
    "VLLM_NO_USAGE_STATS": "1",
    # Each would start a build of several minutes on a machine that has not run it before.
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "HF_HUB_OFFLINE": "1",
}
_MARGIN_TOKENS = 64


@dataclass(frozen=True)
class StartedEngine:
    """llm is a vllm.LLM whose engine and worker live in this process."""

    llm: Any
    startup_s: float

    @property
    def worker(self) -> Any:
        """vLLM's worker, in this process."""
        executor = self.llm.llm_engine.engine_core.engine_core.model_executor
        return executor.driver_worker.worker

    @property
    def config(self) -> Any:
        """vLLM's whole configuration."""
        return self.llm.llm_engine.vllm_config


def start_engine(plan: BenchPlan, engine: EnginePlan, work: Path) -> StartedEngine:
    """The engine of the plan, with random weights in a folder below work."""
    os.environ.update(_ENVIRONMENT)
    # The graphs that vLLM captures when it starts are those of arms that are not tuned.
    os.environ.pop(TUNED_FOLDER, None)
    started = time.perf_counter()
    import vllm

    folder = write_model_folder(plan.model_config_file, engine.num_experts, work / engine.name)
    llm = vllm.LLM(
        model=str(folder),
        **_options(plan, engine),
        additional_config=_additional(engine, folder, plan.seed),
    )
    return StartedEngine(llm, time.perf_counter() - started)


def _options(plan: BenchPlan, engine: EnginePlan) -> dict[str, Any]:
    """Settings of design's reference measurement: no compiler, CUDA graphs for decode alone."""
    longest = max(
        plan.prompt_tokens(engine, batch)
        + plan.admission_steps(batch)
        + plan.timed_steps(engine, batch)
        for batch in engine.batches
    )
    options: dict[str, Any] = {
        "load_format": "dummy",
        "skip_tokenizer_init": True,
        "language_model_only": True,
        "dtype": "bfloat16",
        "enable_prefix_caching": False,
        "disable_log_stats": True,
        "seed": plan.seed,
        "max_num_seqs": max(*engine.batches, plan.prefill_requests, plan.skew_target_batch),
        "max_model_len": longest + plan.coverage_steps * (len(engine.arms) + 1) + _MARGIN_TOKENS,
        "max_num_batched_tokens": plan.max_step_tokens,
    }
    if torch.cuda.is_available():
        options |= {
            "gpu_memory_utilization": 0.9,
            "kernel_config": {"enable_flashinfer_autotune": False, "enable_cutedsl_warmup": False},
            "compilation_config": {
                "mode": 0,
                "cudagraph_mode": "FULL_DECODE_ONLY",
                "cudagraph_capture_sizes": sorted({*engine.batches, plan.skew_target_batch}),
            },
        }
    return options | plan.engine_options


def _additional(engine: EnginePlan, model: Path, seed: int) -> dict[str, Any]:
    """The plugin's settings, its keep sets written to the model's folder."""
    additional: dict[str, Any] = {"gdn_prefill_backend": "triton"}
    if engine.pools:
        keep_sets = {
            name: write_popular_keep_set(
                model / "config.json", num_kept, seed, model / f"pool-{name}.json"
            )
            for name, num_kept in engine.pools.items()
        }
        additional["slimwise"] = {
            "pools": {name: str(path) for name, path in keep_sets.items()},
            "default_pool": next(iter(keep_sets)),
            "check_model_digest": False,
        }
        if any(arm.coverage for arm in engine.arms):
            additional["slimwise"]["coverage_file"] = str(model / "coverage.json")
    return additional


def engine_facts(started: StartedEngine, plan: BenchPlan) -> dict[str, Any]:
    """What the engine is: shape, versions and KV capacity."""
    import vllm

    config = started.config
    num_layers, _, top_k = moe_shape(plan.model_config_file)
    scheduler = started.llm.llm_engine.engine_core.engine_core.scheduler
    return {
        "num_layers": num_layers,
        "top_k": top_k,
        "startup_s": round(started.startup_s, 1),
        "num_gpu_blocks": config.cache_config.num_gpu_blocks,
        "block_tokens": config.cache_config.block_size,
        "max_model_tokens": config.model_config.max_model_len,
        "capacity_tokens": plan.capacity_tokens,
        "capacity_requests": _capacity(config, scheduler.kv_cache_config, plan.capacity_tokens),
        "async_scheduling": bool(config.scheduler_config.async_scheduling),
        "vllm": vllm.__version__,
        "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def _capacity(config: Any, kv_cache_config: Any, request_tokens: int) -> float:
    """Requests of that many tokens whose KV and recurrent state fit at once."""
    from vllm.v1.core.kv_cache_utils import get_max_concurrency_for_kv_cache_config

    longer = copy.copy(config)
    longer.model_config = copy.copy(config.model_config)
    longer.model_config.max_model_len = request_tokens
    return round(get_max_concurrency_for_kv_cache_config(longer, kv_cache_config), 2)
