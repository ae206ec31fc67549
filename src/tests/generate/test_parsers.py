import json

import pytest

from slimwise.backbones.base import ChatParsers
from slimwise.engine.config import ServingConfig
from slimwise.generate.parsers import model_parsers, with_parsers
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


def test_the_miniature_answers_in_text():
    assert model_parsers(EMBEDDED_CHECKPOINT) is None
    assert with_parsers(SERVING, None) == SERVING


def test_parsers_become_arguments_before_those_of_the_user():
    assert with_parsers(SERVING, ChatParsers("qwen3", "qwen3_coder")).extra_args == (
        *("--reasoning-parser", "qwen3"),
        *("--enable-auto-tool-choice", "--tool-call-parser", "qwen3_coder"),
        *("--seed", "1"),
    )
