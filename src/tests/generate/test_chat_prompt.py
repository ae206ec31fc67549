import pytest

from slimwise.engine.chat import ChatRequest
from slimwise.errors import BackboneError
from slimwise.generate.chat_prompt import prompt_lengths
from slimwise.paths import EMBEDDED_CHECKPOINT

TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds <two> numbers.",
        "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}},
    },
}


def request(text: str, *tools) -> ChatRequest:
    return ChatRequest([{"role": "user", "content": text}], tools, 0.0, 1.0, 8, 0)


def test_lengths_are_those_of_transformers():
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(EMBEDDED_CHECKPOINT)
    requests = [request("How many?"), request("Call it, with 3 & 4.", TOOL)]
    expected = [
        len(
            tokenizer.apply_chat_template(
                list(each.messages),
                tools=list(each.tools) or None,
                add_generation_prompt=True,
                return_dict=True,
            )["input_ids"]
        )
        for each in requests
    ]
    assert prompt_lengths(requests, EMBEDDED_CHECKPOINT) == expected


def test_a_template_that_refuses_says_why(tmp_path):
    (tmp_path / "tokenizer.json").write_bytes((EMBEDDED_CHECKPOINT / "tokenizer.json").read_bytes())
    (tmp_path / "chat_template.jinja").write_text("{{ raise_exception('no system turn') }}")
    with pytest.raises(BackboneError, match="no system turn"):
        prompt_lengths([request("Hello")], tmp_path)


def test_a_folder_without_a_template_is_refused(tmp_path):
    with pytest.raises(BackboneError, match="no chat template"):
        prompt_lengths([request("Hello")], tmp_path)
