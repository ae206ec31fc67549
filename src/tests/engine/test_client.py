import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from aiohttp import web

from slimwise.engine import client
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
    attempts: Counter[str] = field(default_factory=Counter)
    bodies: list[dict] = field(default_factory=list)

    async def reply(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        prompt = body["messages"][0]["content"]
        self.bodies.append(body)
        self.attempts[prompt] += 1
        match self.script(prompt, self.attempts[prompt]):
            case "500":
                raise web.HTTPInternalServerError
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


def ask(server: ScriptedServer, *, timeout_s: float = 30, requests=REQUESTS):
    """The answers as (index, content), in the order they arrived."""
    answers: list[tuple[int, str]] = []

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
                requests,
                lambda index, answer: answers.append((index, answer.content)),
                AskingLimits(concurrency=3, timeout_s=timeout_s, outage_s=5),
            )
        finally:
            await runner.cleanup()

    asyncio.run(session())
    return answers


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(client, "_FIRST_PAUSE_S", 0.001)


@pytest.mark.parametrize("failure", ["500", "drop"])
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


def test_functions_are_offered_without_a_choice_and_only_if_there_are_any():
    server = ScriptedServer(lambda prompt, attempt: "answer")
    tool = {"type": "function", "function": {"name": "add"}}
    offered = ChatRequest(REQUESTS[0].messages, [tool], 1.0, 0.95, 8, seed=5)
    ask(server, requests=[offered])
    assert server.bodies[0]["tools"] == [tool]
    assert server.bodies[0]["tool_choice"] == "none"
    assert server.bodies[0]["seed"] == 5
    ask(server, requests=REQUESTS[:1])
    assert "tool_choice" not in server.bodies[1]
