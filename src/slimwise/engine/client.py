"""Asks a server for chat completions, many at a time; transport failures are asked again."""

import asyncio
import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import aiohttp

from slimwise.engine.api_key import authorization
from slimwise.engine.chat import ChatAnswer, ChatRequest, chat_answer, request_body
from slimwise.errors import EngineError

_log = logging.getLogger(__name__)
_PATH = "/v1/chat/completions"
_ATTEMPTS = 6
_FIRST_PAUSE_S = 0.25  # doubles with every attempt: 8 s in all
_OUTAGE_POLL_S = 1.0
_SERVER_ERROR = 500
_UNAVAILABLE = (502, 503)


@dataclass(frozen=True)
class AskingLimits:
    """Requests in flight, seconds one may take, and seconds to wait for a server that is gone."""

    concurrency: int
    timeout_s: float
    outage_s: float


class _OutageError(Exception):
    """Nobody took the request: sending it again is no further attempt."""


async def ask_all(
    base_url: str,
    requests: Sequence[ChatRequest],
    on_answer: Callable[[int, ChatAnswer], None],
    limits: AskingLimits,
) -> None:
    """Call on_answer(index, answer) once for each request, in the order the answers arrive.

    EngineError if the server refuses a request, fails it to the last attempt, or is gone for too
    long. No request is sent after that, but those on their way are waited for and passed on.
    """
    pending = iter(enumerate(requests))
    failures: list[EngineError] = []
    timeout = aiohttp.ClientTimeout(total=limits.timeout_s)
    connector = aiohttp.TCPConnector(limit=limits.concurrency)
    async with aiohttp.ClientSession(
        base_url, timeout=timeout, connector=connector, headers=authorization()
    ) as session:
        asker = _Asker(session, limits)

        async def ask_pending() -> None:
            while not failures and (asked := next(pending, None)) is not None:
                index, request = asked
                try:
                    answer = await asker.ask(request)
                except EngineError as failure:
                    failures.append(failure)
                else:
                    on_answer(index, answer)

        workers = [asyncio.create_task(ask_pending()) for _ in range(limits.concurrency)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
    if failures:
        raise failures[0]


class _Asker:
    """Requests over one session, which wait out an outage together."""

    def __init__(self, session: aiohttp.ClientSession, limits: AskingLimits) -> None:
        self._session = session
        self._limits = limits
        self._is_gone = False

    async def ask(self, request: ChatRequest) -> ChatAnswer:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._ask_present(request, attempt)
            except TimeoutError as failure:
                raise EngineError(
                    f"no answer within {self._limits.timeout_s:g} s to a request of "
                    f"{request.max_tokens} tokens. Raise serving.request_timeout_s, or lower "
                    "evaluation.concurrency."
                ) from failure
            except aiohttp.ClientError as failure:
                if attempt == _ATTEMPTS:
                    raise EngineError(
                        f"the server failed {_ATTEMPTS} times to answer a request, at last with "
                        f"{failure!r}. Its log says why; the same command resumes."
                    ) from failure
                _log.debug("attempt %d of %d failed: %r", attempt, _ATTEMPTS, failure)
                # Not all at once, or a server that was too busy is so again.
                await asyncio.sleep(_FIRST_PAUSE_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.0))
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _ask_present(self, request: ChatRequest, attempt: int) -> ChatAnswer:
        """The answer of a server that is there, or comes back before the limit."""
        limit_s = self._limits.outage_s
        deadline = time.monotonic() + limit_s
        while True:
            try:
                answer = await self._ask_once(request, attempt)
            except _OutageError as failure:
                if time.monotonic() >= deadline:
                    raise EngineError(
                        f"the server was gone for {limit_s:g} s, the limit that "
                        f"serving.outage_timeout_s sets ({failure}). Every answer so far is kept: "
                        "the same command resumes."
                    ) from failure
                self._notice(is_gone=True)
                await asyncio.sleep(_OUTAGE_POLL_S)
            else:
                self._notice(is_gone=False)
                return answer

    async def _ask_once(self, request: ChatRequest, attempt: int) -> ChatAnswer:
        start = time.monotonic()
        try:
            async with self._session.post(_PATH, json=request_body(request)) as response:
                await _check_status(response)
                reply = await response.json()
        except aiohttp.ClientConnectorError as failure:
            raise _OutageError(str(failure)) from failure
        except ValueError as failure:
            # A body that was cut off is bad JSON where its length was not announced.
            raise aiohttp.ClientPayloadError(f"the reply is not JSON: {failure}") from failure
        return chat_answer(reply, request, latency_s=time.monotonic() - start, attempts=attempt)

    def _notice(self, *, is_gone: bool) -> None:
        if is_gone is self._is_gone:
            return
        self._is_gone = is_gone
        if is_gone:
            _log.warning("the server is gone; waiting up to %g s for it", self._limits.outage_s)
        else:
            _log.info("the server is back")


async def _check_status(response: aiohttp.ClientResponse) -> None:
    if response.status in _UNAVAILABLE:
        raise _OutageError(f"status {response.status}")
    if response.status >= _SERVER_ERROR:
        response.raise_for_status()
    if not response.ok:
        raise EngineError(
            f"the server refused a request with status {response.status}: "
            f"{(await response.text())[:500]}"
        )
