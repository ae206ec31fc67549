"""Chat completions as a vLLM server reads and writes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slimwise.core.vocabulary import ServingMode
from slimwise.engine.command import SERVED_NAME
from slimwise.errors import EngineError

_CALLED, _BUDGET_REACHED = "tool_calls", "length"


@dataclass(frozen=True)
class ChatRequest:
    """One turn to complete; tools are JSON function schemas, a temperature of 0 is greedy.

    parses_calls asks a server that has a tool-call parser to take calls out of the text, where
    they otherwise stay. A mode is for servers that have pools; without one the server's default
    applies.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]]
    temperature: float
    top_p: float
    max_tokens: int
    seed: int
    thinking: bool = True
    parses_calls: bool = False
    mode: ServingMode | None = None


@dataclass(frozen=True)
class ChatAnswer:
    """The completed turn; latency is that of the attempt which succeeded, in seconds.

    reasoning is what a reasoning parser took out of content, "" if nothing. tool_calls are
    {"name", "arguments"}, the arguments as text.
    """

    content: str
    reasoning: str
    tool_calls: tuple[Mapping[str, str], ...]
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    latency_s: float
    attempts: int


def template_words(request: ChatRequest) -> dict[str, Any]:
    """What the chat template is told beyond messages and tools."""
    return {"enable_thinking": request.thinking}


def request_body(request: ChatRequest) -> dict[str, Any]:
    """The JSON to post. It has no stop strings: they would end thoughts that quote them."""
    body: dict[str, Any] = {
        "model": SERVED_NAME,
        "messages": list(request.messages),
        "temperature": request.temperature,
        "top_p": request.top_p,
        "max_tokens": request.max_tokens,
        "seed": request.seed,
        "chat_template_kwargs": template_words(request),
        # Some tokenizers call the end of a thought special, and a server then leaves it out.
        "skip_special_tokens": False,
    }
    if request.tools:
        # Without a choice the functions stay in the prompt, and calls in the text.
        choice = "auto" if request.parses_calls else "none"
        body |= {"tools": list(request.tools), "tool_choice": choice}
    if request.mode is not None:
        body["vllm_xargs"] = {"slimwise_mode": request.mode}
    return body


def chat_answer(reply: Any, request: ChatRequest, *, latency_s: float, attempts: int) -> ChatAnswer:
    """The answer to the request in a server's JSON; EngineError if that is no chat completion."""
    try:
        choice, usage = reply["choices"][0], reply["usage"]
        message = choice["message"]
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        return ChatAnswer(
            content=_text(message.get("content")),
            # Older servers say reasoning_content.
            reasoning=_text(message.get("reasoning") or message.get("reasoning_content")),
            tool_calls=tuple(
                {key: _text(call[key]) for key in ("name", "arguments")} for call in calls
            ),
            finish_reason=_finish_reason(choice, usage, request),
            prompt_tokens=usage["prompt_tokens"],
            completion_tokens=usage["completion_tokens"],
            latency_s=latency_s,
            attempts=attempts,
        )
    except (KeyError, IndexError, TypeError, AttributeError) as failure:
        raise EngineError(
            f"the server's reply is no chat completion ({failure!r}): {str(reply)[:500]}"
        ) from failure


def _finish_reason(
    choice: Mapping[str, Any], usage: Mapping[str, int], request: ChatRequest
) -> str:
    told = choice["finish_reason"]
    # A server says so of every answer with a call in it, those that the budget cut too.
    if told == _CALLED and usage["completion_tokens"] >= request.max_tokens:
        return _BUDGET_REACHED
    return told


def _text(value: str | None) -> str:
    # JSON can hold halves of surrogate pairs, which no file of text can.
    return (value or "").encode(errors="replace").decode()
