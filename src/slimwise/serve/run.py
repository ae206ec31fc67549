"""Serves a decoder until it is stopped, and stops with everything that it started."""

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from slimwise.core.vocabulary import Deployment, Phase
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.decode_audit import decode_counts
from slimwise.engine.deployment import (
    RunningDeployment,
    serve_colocated,
    serve_disaggregated,
    serve_phase,
)
from slimwise.errors import EngineError
from slimwise.serve.plan import (
    Served,
    check_before_start,
    check_layout_is_read,
    colocated_model,
    phase_models,
)

_log = logging.getLogger(__name__)
_POLL_S = 1.0


def run(
    served: Served,
    *,
    serving: ServingConfig,
    layout: DisaggregationConfig,
    logs: Path,
    on_ready: Callable[[str], None],
) -> None:
    """Call on_ready with the base URL, then serve until this process is told to stop.

    EngineError with the last lines of its output if a server ends. Prompt tokens that a decode
    server computed itself are warned of as they appear: their answers are not of this mode. So are
    servers that do not tell their counts: they may be busy, or come back.
    """
    with _deployment(served, serving, layout, logs.resolve()) as deployment:
        on_ready(deployment.base_url)
        warned: tuple[str, ...] = ()
        while True:
            time.sleep(_POLL_S)
            deployment.running.raise_if_ended("while it served")
            if served.deployment is Deployment.DISAGGREGATED and served.phase is None:
                faults = _faults(deployment)
                for fault in set(faults) - set(warned):
                    _log.warning("%s", fault)
                warned = faults


def _faults(deployment: RunningDeployment) -> tuple[str, ...]:
    try:
        return decode_counts(deployment.prefill_urls, deployment.decode_urls).faults()
    except EngineError as failure:
        return (str(failure),)


def _deployment(
    served: Served, serving: ServingConfig, layout: DisaggregationConfig, logs: Path
) -> AbstractContextManager[RunningDeployment]:
    check_layout_is_read(served, layout)
    if served.deployment is Deployment.COLOCATED:
        model = colocated_model(served)
        check_before_start(model)
        return serve_colocated(model, serving, logs / "server.log")
    prefill, decode = phase_models(served)
    if served.phase is not None:
        model = prefill if served.phase is Phase.PREFILL else decode
        check_before_start(model)
        return serve_phase(served.phase, model, serving, layout, logs)
    check_before_start(prefill, decode)
    return serve_disaggregated(prefill, decode, serving, layout, logs)
