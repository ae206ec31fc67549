"""Rows made in the shape of open-perfectblend and APIGen-MT."""

import copy
import json
import random

import pytest
import transformers

from slimwise.distill.chat_mixture import ChatMixture, row_tokens
from slimwise.errors import ConfigError
from slimwise.paths import EMBEDDED_CHECKPOINT

CHAT = {
    "conversations": [
        {"from": "human", "value": "What is 2 + 3?"},
        {"from": "gpt", "value": "2 + 3 is 5."},
    ],
    "source": "made",
}
TRAJECTORY = {
    "conversations": [
        {"from": "human", "value": "Cancel order 7."},
        {"from": "function_call", "value": '{"name": "cancel", "arguments": {"order": 7}}'},
        {"from": "observation", "value": '{"done": true}'},
        {"from": "gpt", "value": "It is cancelled."},
    ],
    "tools": json.dumps([{"name": "cancel", "parameters": {"properties": {"order": {}}}}]),
    "system": "You serve a shop.",
}


@pytest.fixture(scope="module")
def tokenizer():
    return transformers.AutoTokenizer.from_pretrained(EMBEDDED_CHECKPOINT)


@pytest.fixture
def mixture(config, tokenizer, tmp_path):
    """A function to the mixture of many such rows, read from local folders."""

    def make(**changes):
        for name, row in (("chat", CHAT), ("agent", TRAJECTORY)):
            (tmp_path / name).mkdir(exist_ok=True)
            rows = [json.dumps({**row, "id": n}) for n in range(20)]
            (tmp_path / name / "train.jsonl").write_text("\n".join(rows))
        folders = {"chat_data": str(tmp_path / "chat"), "agent_data": str(tmp_path / "agent")}
        return ChatMixture(config(**folders, **changes), tokenizer)

    return make


def test_files_of_local_folders_are_inputs(config, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("chat/b.parquet", "chat/a.jsonl", "chat/notes.md", "agent/train.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    chats, agents = [tmp_path / "chat/a.jsonl", tmp_path / "chat/b.parquet"], "agent/train.json"
    local = {"chat_data": "~/chat", "agent_data": str(tmp_path / "agent")}
    assert config(**local).data_files() == []
    local["dataset"] = "chat_mixture"
    assert config(**local).data_files() == [*chats, tmp_path / agents]
    assert config(**local, agent_share=0).data_files() == chats
    assert config(dataset="chat_mixture").data_files() == []


def test_the_models_own_template_writes_the_row(tokenizer):
    text = tokenizer.decode(row_tokens(TRAJECTORY, tokenizer))
    assert text.startswith("<|im_start|>system\ncancel(order")
    assert "You serve a shop." in text
    assert text.count("<|im_start|>assistant") == 2


def test_rows_of_the_chat_api_are_the_same_conversation(tokenizer):
    (described,) = json.loads(TRAJECTORY["tools"])
    call = {"name": "cancel", "arguments": '{"order": 7}'}
    messages = [
        {"role": "system", "content": "You serve a shop."},
        {"role": "user", "content": "Cancel order 7.", "tool_calls": None},
        {"role": "assistant", "tool_calls": [{"type": "function", "function": call}]},
        {"role": "tool", "content": '{"done": true}'},
        {"role": "assistant", "content": "It is cancelled."},
    ]
    row = {"messages": messages, "tools": [{"type": "function", "function": described}]}
    assert row_tokens(row, tokenizer) == row_tokens(TRAJECTORY, tokenizer)
    with pytest.raises(ConfigError, match="no conversation: KeyError"):
        row_tokens({"messages": [{"content": "no role"}]}, tokenizer)


def test_a_row_that_the_models_template_refuses_is_named(tokenizer):
    strict = copy.deepcopy(tokenizer)
    strict.chat_template = "{{ raise_exception('no system turn') }}"
    with pytest.raises(ConfigError, match=r"keys conversations.*no system turn.*leave that row"):
        row_tokens(TRAJECTORY, strict)


def test_a_share_of_none_needs_no_trajectories(config, tokenizer, mixture, tmp_path):
    mixture()
    folders = {"chat_data": str(tmp_path / "chat"), "agent_data": str(tmp_path / "absent")}
    source = ChatMixture(config(**folders, agent_share=0.0), tokenizer)
    assert source.draw(random.Random(0)) == row_tokens(CHAT, tokenizer)


def test_files_of_a_folder_may_differ_in_their_columns(config, tokenizer, tmp_path):
    rows = {
        "chat": CHAT,
        "agent": TRAJECTORY,
        "api": {"messages": [{"role": "user", "content": "x"}]},
    }
    for name, row in rows.items():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row))
    source = ChatMixture(config(chat_data=str(tmp_path), agent_share=0.0), tokenizer)
    rng = random.Random(0)
    drawn = {tuple(source.draw(rng)) for _ in range(40)}
    assert drawn == {tuple(row_tokens(row, tokenizer)) for row in rows.values()}


def test_an_unknown_speaker_is_named(tokenizer):
    with pytest.raises(ConfigError, match="'narrator'"):
        row_tokens({"conversations": [{"from": "narrator", "value": ""}]}, tokenizer)


def test_the_share_of_trajectories_and_equal_draws(mixture, tokenizer):
    source, rng = mixture(), random.Random(0)
    trajectory = row_tokens(TRAJECTORY, tokenizer)
    drawn = [source.draw(rng) for _ in range(400)]
    assert sum(ids == trajectory for ids in drawn) / 400 == pytest.approx(0.35, abs=0.07)
    assert source.draw(random.Random(1)) == source.draw(random.Random(1))


def test_rows_that_are_all_too_long_are_refused(mixture):
    with pytest.raises(ConfigError, match="max_sequence_tokens = 16"):
        mixture(max_sequence_tokens=16).draw(random.Random(0))


def test_a_source_that_is_not_there_is_named(config, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigError, match=r"absent.*chat_data"):
        ChatMixture(config(chat_data=str(tmp_path / "absent")), tokenizer)
