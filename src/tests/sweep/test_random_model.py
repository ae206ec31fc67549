import json

import pytest
from transformers import AutoTokenizer

from slimwise.artifacts.keep_set import read_keep_set
from slimwise.backbones.registry import inspect_checkpoint
from slimwise.core.skew import popularity_order
from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.sweep.random_model import (
    count_experts,
    write_popular_keep_set,
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
    assert count_experts(CONFIG) == 64


def test_a_keep_set_has_the_popular_experts_of_each_layer(model, tmp_path):
    path = write_popular_keep_set(model, 6, 3, tmp_path / "pools" / "m6.json")
    keep_set = read_keep_set(path).keep_set
    assert (keep_set.num_experts, keep_set.num_layers) == (16, 8)
    assert keep_set.kept[7] == tuple(sorted(popularity_order(7, 16, 3)[:6]))


def test_words_are_tokens_and_no_id_is_left_out(tmp_path):
    tokenizer = AutoTokenizer.from_pretrained(write_word_tokenizer(CONFIG, tmp_path / "words"))
    size = json.loads(CONFIG.read_text())["vocab_size"]
    ids = [0, size - 1, 7, 7]
    assert len(tokenizer) == size
    assert tokenizer.all_special_ids == []
    assert tokenizer(tokenizer.decode(ids)).input_ids == ids
