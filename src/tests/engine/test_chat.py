import pytest

from slimwise.core.vocabulary import ServingMode
from slimwise.engine.chat import ChatRequest, chat_answer, request_body
from slimwise.errors import EngineError

TOOL = {"type": "function", "function": {"name": "add"}}
USAGE = {"prompt_tokens": 3, "completion_tokens": 2}


def request(*tools, max_tokens: int = 32768, **changes) -> ChatRequest:
    turn = {"role": "user", "content": "1"}
    return ChatRequest([turn], tools, 1.0, 0.95, max_tokens, 5, **changes)


def answer(message: dict, finish_reason: str = "stop", asked: ChatRequest | None = None):
    choices = [{"message": message, "finish_reason": finish_reason}]
    reply = {"choices": choices, "usage": USAGE}
    return chat_answer(reply, asked or request(), latency_s=0.5, attempts=2)


def test_a_request_says_how_to_sample_and_nothing_that_ends_a_thought():
    body = request_body(request())
    sampling = ("temperature", "top_p", "max_tokens", "seed")
    assert [body[key] for key in sampling] == [1.0, 0.95, 32768, 5]
    assert body["chat_template_kwargs"] == {"enable_thinking": True}
    assert "stop" not in body
    assert "stop_token_ids" not in body
    assert "tools" not in body
    assert "tool_choice" not in body
    assert "vllm_xargs" not in body


def test_functions_are_offered_for_the_server_to_parse_or_for_the_text():
    assert request_body(request(TOOL))["tool_choice"] == "none"
    body = request_body(request(TOOL, parses_calls=True))
    assert body["tools"] == [TOOL]
    assert body["tool_choice"] == "auto"
    assert "tool_choice" not in request_body(request(parses_calls=True))


def test_a_mode_and_no_thinking_are_said():
    body = request_body(request(mode=ServingMode.SLIMWISE, thinking=False))
    assert body["vllm_xargs"] == {"slimwise_mode": "slimwise"}
    assert body["chat_template_kwargs"] == {"enable_thinking": False}


@pytest.mark.parametrize("key", ["reasoning", "reasoning_content"])
def test_the_thought_and_the_calls_are_kept_apart(key):
    function = {"name": "add", "arguments": '{"x": 1}'}
    calls = [{"id": "7", "type": "function", "function": function}]
    found = answer({"content": None, key: "I add.", "tool_calls": calls}, "tool_calls")
    assert found.content == ""
    assert found.reasoning == "I add."
    assert found.tool_calls == (function,)
    assert (found.finish_reason, found.attempts, found.latency_s) == ("tool_calls", 2, 0.5)
    assert (found.prompt_tokens, found.completion_tokens) == (3, 2)


@pytest.mark.parametrize(
    ("budget", "told", "found"),
    [(2, "tool_calls", "length"), (3, "tool_calls", "tool_calls"), (2, "stop", "stop")],
)
def test_a_call_does_not_hide_that_the_budget_cut_its_answer(budget, told, found):
    call = {"function": {"name": "add", "arguments": "{}"}}
    asked = request(max_tokens=budget)
    assert answer({"content": "", "tool_calls": [call]}, told, asked).finish_reason == found


def test_text_without_its_code_points_can_be_stored():
    assert answer({"content": "a\ud83db"}).content.encode() == b"a?b"


@pytest.mark.parametrize(
    "reply", [{}, [], {"choices": [], "usage": USAGE}, {"choices": [{"message": None}]}]
)
def test_a_reply_of_another_kind_is_refused(reply):
    with pytest.raises(EngineError, match="no chat completion"):
        chat_answer(reply, request(), latency_s=0.5, attempts=1)
