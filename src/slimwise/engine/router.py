"""The command line of vllm-router, which sends each request to a prefill and a decode server."""

import importlib.util
import sys
from collections.abc import Sequence

from slimwise.engine.command import ServerCommand
from slimwise.engine.config import ServingConfig
from slimwise.errors import EngineError

_MODULE = "vllm_router"
_CHECK_INTERVAL_S = 1


def router_command(
    prefill_urls: Sequence[str],
    decode_urls: Sequence[str],
    config: ServingConfig,
    *,
    port: int,
    metrics_port: int,
    parent: int,
) -> ServerCommand:
    """How to route between the servers until process `parent` ends.

    Requests are not repeated by the router: it answers with the server's own failure, and the
    client knows whether to ask again. A server that comes back is used within seconds.
    EngineError if vllm-router is not installed.
    """
    if importlib.util.find_spec(_MODULE) is None:
        raise EngineError(
            "vllm-router is not installed, which a disaggregated deployment needs. Install the "
            "packages of envs/cpu.lock.txt or envs/gpu.lock.txt."
        )
    arguments = (
        *(sys.executable, "-m", "slimwise.engine.child", str(parent)),
        *(sys.executable, "-m", "slimwise.engine.keyed_router", "--vllm-pd-disaggregation"),
        *(word for url in prefill_urls for word in ("--prefill", url)),
        *(word for url in decode_urls for word in ("--decode", url)),
        *("--host", config.host, "--port", str(port)),
        *("--prometheus-port", str(metrics_port)),
        # Other policies render each prompt on a server first, to route by its prefix.
        *("--policy", "round_robin"),
        *("--request-timeout-secs", str(config.request_timeout_s)),
        *("--worker-startup-timeout-secs", str(config.start_timeout_s)),
        *("--worker-startup-check-interval", str(_CHECK_INTERVAL_S)),
        *("--health-check-interval-secs", str(_CHECK_INTERVAL_S)),
        *("--health-failure-threshold", "1", "--health-success-threshold", "1"),
        *("--disable-circuit-breaker", "--disable-retries"),
        *("--log-level", "warning"),
    )
    return ServerCommand(arguments, {})
