"""The miniature's tokenizer and chat form."""

import random

import pytest

from slimwise.backbones.mini.chat import render, split_thought
from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.backbones.mini.tokenizer import CONTROL_TOKENS, MARKUP_TOKENS, train_tokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(512, items_per_family=40)


def test_control_and_markup_tokens_come_first(tokenizer) -> None:
    tokens = [*CONTROL_TOKENS, *MARKUP_TOKENS]
    assert tokenizer.convert_tokens_to_ids(tokens) == list(range(7))
    assert tokenizer.eos_token_id == 2


def test_markup_survives_decoding_and_control_does_not(tokenizer) -> None:
    ids = tokenizer("a<think>b</think>c<|im_end|>").input_ids
    assert tokenizer.decode(ids, skip_special_tokens=True) == "a<think>b</think>c"


def test_render_round_trips(tokenizer) -> None:
    item = GRADED["tools"].draw(random.Random(0))
    prompt_ids, response_ids = render(tokenizer, item)
    prompt = tokenizer.decode(prompt_ids)
    assert prompt.startswith("<|im_start|>system\n")
    assert item.tools[0]["function"]["name"] in prompt
    assert prompt.endswith(f"{item.prompt}<|im_end|>\n<|im_start|>assistant\n<think>\n")
    assert tokenizer.decode(response_ids) == f"{item.response}<|im_end|>"


def test_an_unended_thought_has_no_answer() -> None:
    assert split_thought("still thinking") == ("still thinking", None)
    assert split_thought("so\n</think>\n\n7<|im_end|>") == ("so\n", "7")
