"""The plugin's HTTP routes: the default mode, changeable while serving, and expert coverage.

An endpoint plugin of vLLM, which loads those that the variable VLLM_PLUGINS names. It also has the
server ask for its key wherever something is answered or changed.
"""

import secrets
from collections.abc import Sequence
from typing import Any

import vllm.envs
from fastapi import APIRouter, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.types import ASGIApp, Receive, Scope, Send

from slimwise.errors import ConfigError
from slimwise_vllm.coverage_metrics import CoverageMetrics
from slimwise_vllm.plugin import CHOOSER
from slimwise_vllm.request_pools import ModeChoice, PoolChooser

_STATE = "slimwise"
_KEYS = "slimwise_api_keys"
_OPEN_PATHS = ("/health", "/ping", "/version", "/metrics")
"""Routers and scrapers ask for these without a key."""


class KeyCheck:
    """Refuses with 401 what lacks a key of the server, on every path that is not open.

    vLLM asks on some paths only; /invocations, which answers prompts, is not among them.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http" or _may_pass(Request(scope)):
            await self._app(scope, receive, send)
            return
        error = "the server asks for an API key: Authorization: Bearer KEY."
        await JSONResponse({"error": error}, 401)(scope, receive, send)


def _may_pass(request: Request) -> bool:
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
    keys: Sequence[str] = getattr(request.app.state, _KEYS, ())
    if not keys or path.rstrip("/") in _OPEN_PATHS:
        return True
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    is_known = [secrets.compare_digest(given.encode(), key.encode()) for key in keys]
    return scheme.lower() == "bearer" and any(is_known)


router = APIRouter(prefix="/slimwise")


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
    def __init__(self, engine_client: Any, chooser: PoolChooser) -> None:
        self.engine_client = engine_client
        self.chooser = chooser


class SlimWiseEndpoint:
    """vLLM's EndpointPlugin."""

    name = "slimwise"
    required_tasks = ("generate",)

    def attach_router(self, app: FastAPI) -> None:
        """Add the plugin's routes to the server, and the check of its key to all of its routes."""
        app.include_router(router)
        app.add_middleware(KeyCheck)

    async def init_state(self, engine_client: Any, state: Any, args: Any) -> None:
        """Find keys and chooser of this server, and show its coverage beside vLLM's own metrics.

        ConfigError with several API servers, of which a change would reach only one.
        """
        setattr(state, _KEYS, [key for key in args.api_key or [vllm.envs.VLLM_API_KEY] if key])
        chooser = getattr(engine_client.input_processor, CHOOSER, None)
        if chooser is None:
            return
        num_servers = engine_client.vllm_config.parallel_config._api_process_count
        if num_servers > 1:
            raise ConfigError(
                f"--api-server-count={num_servers}: the default mode could be changed in one of "
                "them only. Use 1, or take slimwise out of VLLM_PLUGINS."
            )
        setattr(state, _STATE, _State(engine_client, chooser))
        CoverageMetrics.show(engine_client.vllm_config.additional_config)


def _state(request: Request) -> _State:
    found = getattr(request.app.state, _STATE, None)
    if found is None:
        raise HTTPException(404, "no pools are loaded: name some in --additional-config.")
    return found


def _shown(choice: ModeChoice) -> dict[str, Any]:
    return {"mode": choice.mode, "pool": choice.pool}
