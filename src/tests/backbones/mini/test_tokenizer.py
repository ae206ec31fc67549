"""The miniature's tokenizer and chat form."""

import random

import pytest

from slimwise.backbones.mini.chat import draw_rendered, render, split_thought
from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.backbones.mini.tokenizer import CONTROL_TOKENS, MARKUP_TOKENS, train_tokenizer
from slimwise.errors import ConfigError


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


def test_items_of_too_many_tokens_are_drawn_again_but_not_for_ever(tokenizer) -> None:
    rng, family = random.Random(0), GRADED["maths"]
    drawn = [draw_rendered(tokenizer, family, rng, 200) for _ in range(20)]
    longest = max(len(prompt) + len(response) for prompt, response in drawn)
    others = [draw_rendered(tokenizer, family, rng, longest - 1) for _ in range(20)]
    assert max(len(prompt) + len(response) for prompt, response in others) < longest
    with pytest.raises(ConfigError, match="longer than max_sequence_tokens = 16"):
        draw_rendered(tokenizer, family, rng, 16)


def test_an_unended_thought_has_no_answer() -> None:
    assert split_thought("still thinking") == ("still thinking", None)
    assert split_thought("so\n</think>\n\n7<|im_end|>") == ("so\n", "7")
