import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from slimwise.engine import client
from slimwise.engine.api_key import API_KEY_VARIABLE
from slimwise.engine.chat import ChatRequest
from slimwise.engine.client import AskingLimits, ask_all
from slimwise.errors import EngineError

REQUESTS = [
    ChatRequest([{"role": "user", "content": str(n)}], (), 0.0, 1.0, 8, n) for n in range(9)
]


@dataclass
class ScriptedServer:
    """Answers each prompt with itself after the failures that the script asks for."""

    script: Callable[[str, int], str]
    api_key: str | None = None
    attempts: Counter[str] = field(default_factory=Counter)

    async def reply(self, request: web.Request) -> web.StreamResponse:
        expected = None if self.api_key is None else f"Bearer {self.api_key}"
        assert request.headers.get("Authorization") == expected
        body = await request.json()
        prompt = body["messages"][0]["content"]
        self.attempts[prompt] += 1
        match self.script(prompt, self.attempts[prompt]):
            case "500":
                raise web.HTTPInternalServerError
            case "503":
                raise web.HTTPServiceUnavailable
            case "not json":
                return web.Response(text='{"choices": [', content_type="application/json")
            case "400":
                raise web.HTTPBadRequest(text="prompt too long")
            case "drop":
                assert request.transport is not None
                request.transport.abort()
            case "hang":
                await asyncio.sleep(1)
        message = {"content": f"{prompt}</think>"}
        usage = {"prompt_tokens": 3, "completion_tokens": 2}
        choices = [{"message": message, "finish_reason": "stop"}]
        return web.json_response({"choices": choices, "usage": usage})


def ask(server: ScriptedServer, *, timeout_s: float = 30, outage_s: float = 5, answers=None):
    """The answers as (index, content), in the order they arrived."""
    answers = [] if answers is None else answers

    async def session() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", server.reply)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            await ask_all(
                url,
                REQUESTS,
                lambda index, answer: answers.append((index, answer.content)),
                AskingLimits(concurrency=3, timeout_s=timeout_s, outage_s=outage_s),
            )
        finally:
            await runner.cleanup()

    asyncio.run(session())
    return answers


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(client, "_FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(client, "_OUTAGE_POLL_S", 0.001)


def test_the_key_travels_with_every_request(monkeypatch):
    monkeypatch.setenv(API_KEY_VARIABLE, "a key")
    assert len(ask(ScriptedServer(lambda *_: "", api_key="a key"))) == len(REQUESTS)


@pytest.mark.parametrize("failure", ["500", "drop", "not json"])
def test_failures_lose_nothing_and_repeat_nothing(failure):
    server = ScriptedServer(
        lambda prompt, attempt: failure if int(prompt) % 2 and attempt <= 3 else "answer"
    )
    assert sorted(ask(server)) == [(n, f"{n}</think>") for n in range(9)]
    assert server.attempts["0"] == 1
    assert server.attempts["1"] == 4


def test_a_lasting_failure_ends_the_run_with_its_cause():
    server = ScriptedServer(lambda prompt, attempt: "500" if prompt == "4" else "answer")
    with pytest.raises(EngineError, match="failed 6 times"):
        ask(server)


def test_a_refusal_is_not_asked_again():
    server = ScriptedServer(lambda prompt, attempt: "400" if prompt == "4" else "answer")
    with pytest.raises(EngineError, match="status 400: prompt too long"):
        ask(server)
    assert server.attempts["4"] == 1


def test_an_answer_that_takes_too_long_names_the_limit():
    server = ScriptedServer(lambda prompt, attempt: "hang")
    with pytest.raises(EngineError, match=r"within 0\.2 s.*serving\.request_timeout_s"):
        ask(server, timeout_s=0.2)


def test_answers_on_their_way_are_waited_for_when_another_is_refused():
    server = ScriptedServer(
        lambda prompt, attempt: {"0": "400", "1": "hang", "2": "hang"}.get(prompt, "answer")
    )
    answers: list[tuple[int, str]] = []
    with pytest.raises(EngineError, match="status 400"):
        ask(server, answers=answers)
    assert sorted(answers) == [(1, "1</think>"), (2, "2</think>")]
    assert set(server.attempts) == {"0", "1", "2"}


def test_a_server_that_is_unavailable_for_long_is_no_failed_attempt():
    server = ScriptedServer(lambda prompt, attempt: "503" if attempt <= 20 else "answer")
    assert len(ask(server)) == len(REQUESTS)
    assert set(server.attempts.values()) == {21}


def test_a_server_that_stays_unavailable_ends_the_run():
    server = ScriptedServer(lambda prompt, attempt: "503")
    with pytest.raises(EngineError, match=r"gone for 0\.05 s.*outage_timeout_s.*status 503"):
        ask(server, outage_s=0.05)
