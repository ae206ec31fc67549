"""Measures a deployment load by load, and writes each point as soon as it is known."""

import json
import logging
import urllib.request
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slimwise.core.vocabulary import Deployment, MoeKernels, Phase
from slimwise.engine.command import this_host
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.decode_audit import decode_counts
from slimwise.engine.deployment import RunningDeployment
from slimwise.engine.metrics import read_metrics
from slimwise.sweep.bench import Bench, running_bench
from slimwise.sweep.deployments import Swept, already_running, running
from slimwise.sweep.kernels import logged_kernels
from slimwise.sweep.point_log import PointLog
from slimwise.sweep.points import Point
from slimwise.sweep.steady import Sample, ShortLoadError, steady_part, watched

_log = logging.getLogger(__name__)

_CACHE_INFO = "vllm:cache_config_info"
_TIMEOUT_S = 10


@dataclass(frozen=True)
class Setup:
    """How the servers of a deployment run; the folder logs takes their output.

    endpoint is the address of a deployment that runs already, and is not started then.
    """

    serving: ServingConfig
    layout: DisaggregationConfig
    logs: Path
    endpoint: str | None = None


def measure(wanted: Sequence[Point], swept: Swept, setup: Setup, log: PointLog) -> None:
    """Add the points that the log lacks to it.

    EngineError at the first that cannot be measured; those before it are kept.
    """
    pending = [point for point in wanted if point.digest not in log]
    measured_before = len(wanted) - len(pending)
    _log.info("%s: %d points, %d measured before", swept.name, len(wanted), measured_before)
    if not pending:
        return
    with (
        running_bench(setup.logs / "bench.log", setup.serving.request_timeout_s) as bench,
        _deployment(swept, setup) as deployment,
    ):
        facts = _server_facts(deployment, setup.serving)
        for point in pending:
            row = _measured_long_enough(point, bench, swept, deployment, setup.serving) | facts
            if point.phase is Phase.DECODE:
                row["tokens_per_s_per_gpu"] = row["decode_tokens_per_s"] / facts["gpus"]
            log.append(point.digest, row)


def _deployment(swept: Swept, setup: Setup) -> AbstractContextManager[RunningDeployment]:
    if setup.endpoint is not None:
        return nullcontext(already_running(setup.endpoint, setup.layout))
    return running(swept, setup.serving, setup.layout, setup.logs)


def _names(point: Point, swept: Swept) -> dict[str, Any]:
    return {
        "kind": str(point.phase),
        "server": swept.name,
        "backbone": swept.backbone,
        "deployment": str(swept.deployment),
        "mode": str(point.arm.mode),
        "pool": point.arm.pool,
        "num_kept": point.arm.num_kept,
        "routing": str(swept.routing),
        "batch_offered": point.load.concurrency,
        "num_requests": point.load.num_requests,
        "prompt_tokens": point.load.prompt_tokens,
        "output_tokens": point.load.output_tokens,
    }


def _measured_long_enough(
    point: Point, bench: Bench, swept: Swept, deployment: RunningDeployment, serving: ServingConfig
) -> dict[str, Any]:
    """The row of a point; answers that are over too soon are asked for again, twice as long.

    How soon that is depends on what else the machine does. EngineError if the model's length does
    not allow it.
    """
    try:
        return _names(point, swept) | _measured(point, bench, swept, deployment)
    except ShortLoadError as failure:
        load = replace(point.load, output_tokens=2 * point.load.output_tokens)
        if load.prompt_tokens + load.output_tokens > serving.max_model_len_tokens:
            raise
        _log.warning("%s Asking for %d tokens.", failure, load.output_tokens)
    return _measured_long_enough(replace(point, load=load), bench, swept, deployment, serving)


def _measured(
    point: Point, bench: Bench, swept: Swept, deployment: RunningDeployment
) -> dict[str, Any]:
    urls = deployment.prefill_urls, deployment.decode_urls
    earlier = decode_counts(*urls)
    with watched(deployment.decode_urls) as samples:
        result = bench.measure(point.load, base_url=deployment.base_url, tokenizer=swept.tokenizer)
    if point.phase is Phase.PREFILL:
        return {"prefill_tokens_per_s": result["total_input_tokens"] / result["duration"]}
    is_apart = swept.deployment is Deployment.DISAGGREGATED
    faults = (decode_counts(*urls) - earlier).faults() if is_apart else ()
    return _decode_speed(point, samples, result) | {"faults": "; ".join(faults)}


def _decode_speed(
    point: Point, samples: Sequence[Sample], result: dict[str, Any]
) -> dict[str, Any]:
    """Means of the steady part, then what requests met from first to last."""
    steady = steady_part(samples)
    per_user = steady.tokens_per_s / steady.batch
    return {
        "context_tokens": point.load.prompt_tokens + point.load.output_tokens / 2,
        "batch_running": steady.batch,
        "step_ms": 1e3 / per_user,
        "tokens_per_s_per_user": per_user,
        "decode_tokens_per_s": steady.tokens_per_s,
        "steady_s": steady.seconds,
        "output_tokens_per_s": result["output_throughput"],
        "ttft_ms": result["median_ttft_ms"],
        "ttft_p99_ms": result["p99_ttft_ms"],
        "tpot_ms": result["median_tpot_ms"],
        "tpot_p99_ms": result["p99_tpot_ms"],
        "preemptions": samples[-1].num_preemptions - samples[0].num_preemptions,
        "kv_cache_share": max(sample.cache_share for sample in samples),
    }


def _server_facts(deployment: RunningDeployment, serving: ServingConfig) -> dict[str, Any]:
    """Versions, capacity and kernels of the first decode server, and the GPUs of all of them.

    EngineError if that is no vLLM server.
    """
    url = deployment.decode_urls[0]
    cache = read_metrics(url).labels(_CACHE_INFO)
    with urllib.request.urlopen(f"{url}/version", timeout=_TIMEOUT_S) as reply:
        version = json.load(reply)["version"]
    return {
        "vllm": version,
        "gpus": serving.gpus * len(deployment.decode_urls),
        "kernels": str(_kernels(deployment, url)),
        "kv_cache_tokens": _number(cache.get("kv_cache_size_tokens")),
        "kv_blocks": _number(cache.get("num_gpu_blocks")),
        "block_tokens": _number(cache.get("block_size")),
    }


def _kernels(deployment: RunningDeployment, decode_url: str) -> MoeKernels:
    """Where the MoE kernel's settings are from, if the server started here."""
    for server in deployment.started:
        if server.base_url == decode_url:
            log = server.log.read_text("utf-8", errors="replace")
            return logged_kernels(log, this_host().device)
    return MoeKernels.UNKNOWN


def _number(label: str | None) -> int | None:
    return int(label) if label is not None and label.isdigit() else None
