"""The plugin's HTTP routes: the default mode, changeable while serving, and expert coverage.

An endpoint plugin of vLLM, which loads those that the variable VLLM_PLUGINS names.
"""

import secrets
from collections.abc import Sequence
from typing import Any

import vllm.envs
from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from pydantic import BaseModel, ConfigDict

from slimwise.errors import ConfigError
from slimwise_vllm.coverage_metrics import CoverageMetrics
from slimwise_vllm.plugin import CHOOSER
from slimwise_vllm.request_pools import ModeChoice, PoolChooser

_STATE = "slimwise"


def _check_key(request: Request) -> None:
    """Refuse with 401 what lacks a key of the server, as vLLM does on routes of its own only."""
    state = getattr(request.app.state, _STATE, None)
    given = request.headers.get("Authorization", "").encode()
    expected = [f"Bearer {key}".encode() for key in state.api_keys] if state else []
    if expected and not any(secrets.compare_digest(given, each) for each in expected):
        raise HTTPException(401, "the server asks for an API key: Authorization: Bearer KEY.")


router = APIRouter(prefix="/slimwise", dependencies=[Depends(_check_key)])


class DefaultMode(BaseModel):
    """What a PUT changes; a field left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    mode: str | None = None
    pool: str | None = None


@router.get("/default_mode")
async def default_mode(request: Request) -> dict[str, Any]:
    """Mode and pool of requests that name none, and the pools that there are."""
    chooser = _state(request).chooser
    return _shown(chooser.default) | {"pools": chooser.pool_names}


@router.put("/default_mode")
async def change_default_mode(request: Request, wanted: DefaultMode) -> dict[str, Any]:
    """Change them for requests to come; those in flight keep their pools. 400 names a bad value."""
    chooser = _state(request).chooser
    try:
        chooser.set_default(wanted.mode, wanted.pool)
    except ConfigError as failure:
        raise HTTPException(status_code=400, detail=str(failure)) from failure
    return _shown(chooser.default)


@router.get("/coverage")
async def coverage(request: Request) -> dict[str, Any]:
    """What the coverage file holds, as of now; 404 if nothing is counted."""
    state = _state(request)
    reports = await state.engine_client.collective_rpc("slimwise_coverage")
    report = next((report for report in reports if report is not None), None)
    if report is None:
        raise HTTPException(404, "no coverage is counted: set slimwise.coverage_file.")
    return report


class _State:
    def __init__(self, engine_client: Any, chooser: PoolChooser, api_keys: Sequence[str]) -> None:
        self.engine_client = engine_client
        self.chooser = chooser
        self.api_keys = api_keys


class SlimWiseEndpoint:
    """vLLM's EndpointPlugin."""

    name = "slimwise"
    required_tasks = ("generate",)

    def attach_router(self, app: FastAPI) -> None:
        """Add the plugin's routes to the server."""
        app.include_router(router)

    async def init_state(self, engine_client: Any, state: Any, args: Any) -> None:
        """Find the chooser of this server, and show its coverage beside vLLM's own metrics.

        ConfigError with several API servers, of which a change would reach only one.
        """
        chooser = getattr(engine_client.input_processor, CHOOSER, None)
        if chooser is None:
            return
        num_servers = engine_client.vllm_config.parallel_config._api_process_count
        if num_servers > 1:
            raise ConfigError(
                f"--api-server-count={num_servers}: the default mode could be changed in one of "
                "them only. Use 1, or take slimwise out of VLLM_PLUGINS."
            )
        keys = [key for key in args.api_key or [vllm.envs.VLLM_API_KEY] if key]
        setattr(state, _STATE, _State(engine_client, chooser, keys))
        CoverageMetrics.show(engine_client.vllm_config.additional_config)


def _state(request: Request) -> _State:
    found = getattr(request.app.state, _STATE, None)
    if found is None:
        raise HTTPException(404, "no pools are loaded: name some in --additional-config.")
    return found


def _shown(choice: ModeChoice) -> dict[str, Any]:
    return {"mode": choice.mode, "pool": choice.pool}
