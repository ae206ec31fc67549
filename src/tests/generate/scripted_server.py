"""A server of prepared answers, with faults on the way; run by path, so that it can be killed.

python scripted_server.py PORT SCRIPT LOG

SCRIPT is JSON: the answer to each prompt, and the shares of first attempts that fail with status
500, or whose connection ends inside the body. LOG gets seed and temperature of what was sent whole.
"""

import asyncio
import hashlib
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from aiohttp import web

_DELAY_S = 0.02


def _digest(messages: Any, tools: Any) -> str:
    return hashlib.sha256(json.dumps([messages, tools]).encode()).hexdigest()


class ScriptedServer:
    """Gives each prompt its answer; the faults of a request depend on nothing but its seed."""

    def __init__(self, script: dict[str, Any], log: Path) -> None:
        self._answers = {
            _digest(each["messages"], each["tools"]): each["answer"] for each in script["prompts"]
        }
        self._failing_share = script["failing_share"]
        self._dropped_share = script["dropped_share"]
        self._attempts: Counter[tuple[str, str]] = Counter()
        self._log = log.open("a")

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        digest = _digest(body["messages"], body.get("tools", []))
        sampling = f"{body['seed']} {body['temperature']}"
        self._attempts[digest, sampling] += 1
        await asyncio.sleep(_DELAY_S)
        if digest not in self._answers:
            raise web.HTTPBadRequest(text="this prompt was not foreseen")
        chance = body["seed"] % 1000 / 1000 if self._attempts[digest, sampling] == 1 else 1.0
        if chance < self._failing_share:
            raise web.HTTPInternalServerError
        reply = json.dumps(_completion(self._answers[digest])).encode()
        if chance < self._failing_share + self._dropped_share:
            return await _cut(request, reply)
        self._log.write(f"{sampling}\n")
        self._log.flush()
        return web.Response(body=reply, content_type="application/json")


def _completion(message: dict[str, Any]) -> dict[str, Any]:
    finish_reason = message.get("finish_reason", "stop")
    length = sum(len(str(value)) for value in message.values()) // 4
    return {
        "choices": [{"message": message, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 30, "completion_tokens": length},
    }


async def _cut(request: web.Request, reply: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.content_length = len(reply)
    await response.prepare(request)
    await response.write(reply[: len(reply) // 2])
    assert request.transport is not None
    request.transport.abort()
    return response


def main() -> None:
    port, script, log = sys.argv[1:]
    server = ScriptedServer(json.loads(Path(script).read_bytes()), Path(log))
    app = web.Application(client_max_size=1 << 26)
    app.router.add_post("/v1/chat/completions", server.complete)
    web.run_app(app, host="127.0.0.1", port=int(port), print=None, access_log=None)


if __name__ == "__main__":
    main()
