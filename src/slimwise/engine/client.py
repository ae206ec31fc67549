"""Asks a server for chat completions, many at a time; transport failures are asked again."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from slimwise.core.vocabulary import ServingMode
from slimwise.engine.command import SERVED_NAME
from slimwise.errors import EngineError

_log = logging.getLogger(__name__)
_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.25  # doubles with every attempt: 8 s in all
_SERVER_ERROR = 500


@dataclass(frozen=True)
class ChatRequest:
    """One turn to complete; tools are JSON function schemas, a temperature of 0 is greedy.

    A mode is for servers that have pools; without one the server's default applies.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    temperature: float
    top_p: float
    max_tokens: int
    seed: int
    mode: ServingMode | None = None


@dataclass(frozen=True)
class ChatAnswer:
    """The completed turn, raw; latency counts the attempt that succeeded, in seconds."""

    content: str
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    latency_s: float


async def ask_all(
    base_url: str,
    requests: Sequence[ChatRequest],
    on_answer: Callable[[int, ChatAnswer], None],
    *,
    concurrency: int,
    timeout_s: float,
) -> None:
    """Call on_answer(index, answer) once for each request, in the order the answers arrive.

    EngineError at the first request that the server refuses, or that fails to the last attempt;
    answers that arrived before have been passed on.
    """
    pending = iter(enumerate(requests))
    timeout = aiohttp.ClientTimeout(total=timeout_s)
    connector = aiohttp.TCPConnector(limit=concurrency)
    async with aiohttp.ClientSession(base_url, timeout=timeout, connector=connector) as session:

        async def ask_pending() -> None:
            for index, request in pending:
                on_answer(index, await _ask(session, request))

        workers = [asyncio.create_task(ask_pending()) for _ in range(concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)


async def _ask(session: aiohttp.ClientSession, request: ChatRequest) -> ChatAnswer:
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return await _ask_once(session, request)
        except TimeoutError as failure:
            limit_s = session.timeout.total
            raise EngineError(
                f"no answer within {limit_s:g} s to a request of {request.max_tokens} tokens. "
                "Raise serving.request_timeout_s, or lower evaluation.concurrency."
            ) from failure
        except aiohttp.ClientError as failure:
            if attempt == _ATTEMPTS:
                raise EngineError(
                    f"the server failed {_ATTEMPTS} times to answer a request, at last with "
                    f"{failure!r}. Its log says why; the same command resumes."
                ) from failure
            _log.debug("attempt %d of %d failed: %r", attempt, _ATTEMPTS, failure)
            await asyncio.sleep(_FIRST_PAUSE_S * 2 ** (attempt - 1))
    raise AssertionError("unreachable: the last attempt returns or raises")


async def _ask_once(session: aiohttp.ClientSession, request: ChatRequest) -> ChatAnswer:
    start = time.monotonic()
    async with session.post("/v1/chat/completions", json=_body(request)) as response:
        if response.status >= _SERVER_ERROR:
            response.raise_for_status()
        if not response.ok:
            raise EngineError(
                f"the server refused a request with status {response.status}: "
                f"{(await response.text())[:500]}"
            )
        reply = await response.json()
    choice, usage = reply["choices"][0], reply["usage"]
    return ChatAnswer(
        content=choice["message"]["content"] or "",
        finish_reason=choice["finish_reason"],
        prompt_tokens=usage["prompt_tokens"],
        completion_tokens=usage["completion_tokens"],
        latency_s=time.monotonic() - start,
    )


def _body(request: ChatRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": SERVED_NAME,
        "messages": list(request.messages),
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
        # Some tokenizers call the end of a thought special, and a server then leaves it out.
        "skip_special_tokens": False,
    }
    if request.tools:
        # With no choice the functions stay in the prompt, and calls stay in the text, unparsed.
        body |= {"tools": list(request.tools), "tool_choice": "none"}
    if request.mode is not None:
        body["vllm_xargs"] = {"slimwise_mode": request.mode}
    return body
