import asyncio
import json

import pytest

from slimwise.backbones.base import ChatParsers
from slimwise.backbones.mini.chat import messages
from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.backbones.mini.tasks.split import Split, draw_items
from slimwise.engine.chat import ChatAnswer, ChatRequest
from slimwise.engine.client import AskingLimits, ask_all
from slimwise.engine.config import ServingConfig
from slimwise.engine.deployment import serve
from slimwise.generate.parsers import model_parsers, reads_calls, thoughts_in_text, with_parsers
from slimwise.paths import EMBEDDED_CHECKPOINT

XML = "{{ '<think>' }}...</think>{{ '<tool_call>\\n<function=' + name + '>' }}"
JSON = "{{ '<think>' }}...</think>{{ '<tool_call>\\n{\"name\": ' }}"
SERVING = ServingConfig(max_model_len_tokens=64, extra_args=("--seed", "1"))


@pytest.mark.parametrize(
    ("model_type", "template", "parsers"),
    [
        ("qwen3_5_moe", XML, ChatParsers("qwen3", "qwen3_coder")),
        ("qwen3_moe", JSON, ChatParsers("qwen3", "hermes")),
        ("gemma4", "{{ '<|turn>' }}", ChatParsers("gemma4", "gemma4")),
        ("olmoe", "{{ '<|user|>' }}", None),
    ],
)
def test_a_family_and_its_template_name_the_parsers(tmp_path, model_type, template, parsers):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    (tmp_path / "chat_template.jinja").write_text(template)
    assert model_parsers(tmp_path) == parsers


@pytest.mark.parametrize(
    ("template", "arguments", "in_text"),
    [
        ("{{ '<|user|>' }}", (), False),
        ("{{ '<|assistant|><think>' }}", (), True),
        ("{{ content.split('</think>')[-1] }}", (), True),
        (XML, ("--reasoning-parser", "qwen3"), False),
        (XML, ("--reasoning-parser=qwen3",), False),
    ],
)
def test_thoughts_are_in_the_text_if_there_are_any_and_nobody_takes_them_out(
    tmp_path, template, arguments, in_text
):
    (tmp_path / "chat_template.jinja").write_text(template)
    serving = SERVING.model_copy(update={"extra_args": arguments})
    assert thoughts_in_text(serving, tmp_path) is in_text


def test_calls_are_read_by_a_parser_of_ours_or_of_the_user():
    assert not reads_calls(SERVING)
    assert reads_calls(with_parsers(SERVING, ChatParsers("qwen3", "hermes")))
    assert reads_calls(SERVING.model_copy(update={"extra_args": ("--tool-call-parser=olmo3",)}))


def test_the_miniature_answers_in_text():
    assert model_parsers(EMBEDDED_CHECKPOINT) is None
    assert thoughts_in_text(SERVING, EMBEDDED_CHECKPOINT)
    assert with_parsers(SERVING, None) == SERVING


def test_parsers_become_arguments_before_those_of_the_user():
    assert with_parsers(SERVING, ChatParsers("qwen3", "qwen3_coder")).extra_args == (
        *("--reasoning-parser", "qwen3"),
        *("--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder"),
        *("--seed", "1"),
    )


@pytest.mark.slow
def test_a_server_with_parsers_takes_thought_and_calls_out_of_the_text(tmp_path):
    # The miniature writes its calls like older Qwen models, whose parsers read them.
    limits = {"max_num_seqs": 8, "kv_cache_gib": 0.25, "cpu_threads": 1}
    serving = ServingConfig(max_model_len_tokens=640, **limits)
    items = [
        item
        for family in (GRADED["maths"], GRADED["tools"])
        for item in draw_items(family, 4, 3, Split.TEST)
    ]
    requests = [
        ChatRequest(messages(item), item.tools, 0.0, 1.0, 192, 0, parses_calls=True)
        for item in items
    ]
    answers: dict[int, ChatAnswer] = {}
    parsed = with_parsers(serving, ChatParsers("qwen3", "hermes"))
    with serve(EMBEDDED_CHECKPOINT, parsed, tmp_path / "server.log") as url:
        asyncio.run(ask_all(url, requests, answers.__setitem__, AskingLimits(8, 120, 5)))
    for index, item in enumerate(items):
        thought, _, _ = item.response.partition("</think>")
        assert answers[index].reasoning == thought
        calls = [
            {"name": call["name"], "arguments": json.loads(call["arguments"])}
            for call in answers[index].tool_calls
        ]
        assert calls == item.reference.get("calls", [])
        assert ("boxed" in answers[index].content) is not bool(calls)
