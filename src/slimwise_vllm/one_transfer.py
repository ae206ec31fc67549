"""Refuses requests for several prompts or answers whose KV cache would be one transfer.

Each answer of such a request reads the same cache, and the first to have read it gives it up: the
others may then read what another prompt has left in its place.
"""

import functools
from collections.abc import Awaitable, Callable
from typing import Any

RENDERERS = (
    (
        "vllm.entrypoints.openai.completion.serving",
        "OpenAIServingCompletion",
        "render_completion_request",
    ),
    ("vllm.entrypoints.openai.chat_completion.serving", "OpenAIServingChat", "render_chat_request"),
)
"""Module, class and method that a request passes before the engine; what it returns is told."""


def refusing_shared_transfers(render: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """The method, but with a client error for requests that would share their transfer."""

    @functools.wraps(render)
    async def render_one(self: Any, request: Any) -> Any:
        rendered = await render(self, request)
        if not request.kv_transfer_params or not isinstance(rendered, list | tuple):
            return rendered
        # Of a chat, the conversation comes before the prompts.
        prompts = rendered[-1] if isinstance(rendered, tuple) else rendered
        num_answers = len(prompts) * (request.n or 1)
        if num_answers == 1:
            return rendered
        return self.create_error_response(_refusal(num_answers))

    return render_one


def refuse_shared_transfer(params: Any) -> None:
    """VLLMValidationError if these parameters ask for answers that would share their transfer.

    The renderers refuse before an answer is begun; what they have not seen is refused here.
    """
    from vllm.exceptions import VLLMValidationError

    num_answers = getattr(params, "n", 1)
    if num_answers > 1 and (params.extra_args or {}).get("kv_transfer_params"):
        raise VLLMValidationError(_refusal(num_answers))


def _refusal(num_answers: int) -> str:
    return (
        f"{num_answers} answers in one request would share one transfer of KV cache from the "
        "prefill server. Send a request for each answer: one prompt, and n = 1."
    )
