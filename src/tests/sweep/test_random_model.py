import json

import pytest
from transformers import AutoTokenizer

from slimwise.artifacts.keep_set import read_keep_set
from slimwise.backbones.registry import inspect_checkpoint
from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.sweep.random_model import (
    write_even_keep_set,
    write_random_model,
    write_word_tokenizer,
)

CONFIG = EMBEDDED_CHECKPOINT / "config.json"


@pytest.fixture
def model(tmp_path):
    return write_random_model(CONFIG, 16, tmp_path / "model")


def test_a_shape_without_weights_is_a_model_folder_with_its_experts(model):
    assert inspect_checkpoint(model).shape.num_experts == 16
    whole = write_random_model(CONFIG, None, model.parent / "whole")
    assert inspect_checkpoint(whole).shape.num_experts == 64


def test_a_keep_set_spreads_over_all_experts(model, tmp_path):
    keep_set = read_keep_set(write_even_keep_set(model, 6, tmp_path / "pools" / "m6.json")).keep_set
    assert keep_set.num_experts == 16
    assert keep_set.kept[0] == (0, 2, 5, 8, 10, 13)
    assert keep_set.is_uniform


def test_words_are_tokens_and_no_id_is_left_out(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(write_word_tokenizer(CONFIG, tmp_path / "words"))
    size = json.loads(CONFIG.read_text())["vocab_size"]
    ids = [0, size - 1, 7, 7]
    assert len(tokenizer) == size
    assert tokenizer.all_special_ids == []
    assert tokenizer(tokenizer.decode(ids)).input_ids == ids
