import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from slimwise_vllm.one_transfer import refuse_shared_transfer, refusing_shared_transfers


class Serving:
    """Renders whatever a request holds, and words errors, as vLLM's serving classes do."""

    async def render(self, request: Any) -> Any:
        return request.rendered

    def create_error_response(self, message: str) -> str:
        return f"refused: {message}"


def answer(rendered: Any, *, n: int | None = 1, transfer: dict[str, Any] | None = None) -> Any:
    request = SimpleNamespace(rendered=rendered, n=n, kv_transfer_params=transfer)
    return asyncio.run(refusing_shared_transfers(Serving.render)(Serving(), request))


TRANSFER = {"do_remote_decode": True}


@pytest.mark.parametrize("n", [1, None])
@pytest.mark.parametrize("rendered", [["prompt"], (["turn", "turn"], ["prompt"])])
def test_one_answer_to_one_prompt_passes(rendered, n):
    assert answer(rendered, n=n, transfer=TRANSFER) == rendered


@pytest.mark.parametrize(
    ("rendered", "n", "num_answers"),
    [(["prompt"], 2, 2), (["one", "two", "three"], None, 3), ((["turn"], ["prompt"]), 4, 4)],
)
def test_several_answers_are_refused_with_their_number(rendered, n, num_answers):
    refusal = answer(rendered, n=n, transfer=TRANSFER)
    assert refusal.startswith(f"refused: {num_answers} answers in one request")
    assert "n = 1" in refusal


def test_without_a_transfer_nothing_is_refused():
    assert answer(["one", "two"], n=3) == ["one", "two"]


def test_what_vllm_itself_refuses_is_passed_on():
    error = SimpleNamespace(message="too long")
    assert answer(error, n=2, transfer=TRANSFER) is error


def parameters(n: int, **extra_args: Any) -> Any:
    return SimpleNamespace(n=n, extra_args=extra_args or None)


def test_several_answers_are_refused_where_no_renderer_has_seen_them():
    """As of vLLM's endpoint that takes tokens."""
    from vllm.exceptions import VLLMValidationError

    for passing in (parameters(1, kv_transfer_params=TRANSFER), parameters(2), parameters(2, a=1)):
        refuse_shared_transfer(passing)
    with pytest.raises(VLLMValidationError, match=r"2 answers in one request .* n = 1"):
        refuse_shared_transfer(parameters(2, kv_transfer_params=TRANSFER))
