"""Made rows in the columns of the public data sets."""

import copy
import json
from array import array

import pytest
import torch
from pydantic import ValidationError
from transformers import AutoTokenizer

from slimwise.backbones.registry import backbone_for
from slimwise.calibrate.batches import first_batch
from slimwise.calibrate.config import CalibrationConfig
from slimwise.calibrate.mixture import COMPONENTS
from slimwise.calibrate.observer import observed
from slimwise.calibrate.sequences import component_sequences
from slimwise.core.vocabulary import Packing
from slimwise.errors import ConfigError
from slimwise.inspect.config import BackboneConfig
from slimwise.inspect.source import model_folder

CALL = {"name": "area", "arguments": {"side": 3}}
TURNS = [{"role": "user", "content": "count to two"}, {"role": "assistant", "content": "one two"}]
TRAJECTORY = [
    {"role": "system", "content": [{"type": "text", "text": "you edit files"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"function": {"name": "bash", "arguments": '{"command": "ls"}'}}],
    },
    {"role": "tool", "content": "setup.py", "tool_calls": None},
]
ROWS = {
    "evol_codealpaca": {"instruction": "add one", "output": "x + 1"},
    "xlam_function_calling": {
        "id": 7,
        "query": "area of a square",
        "answers": json.dumps([CALL]),
        "tools": json.dumps(
            [
                {
                    "name": "area",
                    "description": "of a square",
                    "parameters": {"side": {"type": "int"}},
                }
            ]
        ),
    },
    "thoughts_code": {"messages": TURNS, "num_tokens": 4, "source": "made"},
    "thoughts_math": {"messages": TURNS, "num_tokens": 4, "source": "made"},
    "thoughts_science": {"messages": TURNS, "num_tokens": 4, "source": "made"},
    "swe_smith": {"messages": json.dumps(TRAJECTORY), "instance_id": "made", "resolved": True},
}
TEXTS = {
    "evol_codealpaca": "add one",
    "xlam_function_calling": "area(side: int)",
    "thoughts_code": "one two",
    "thoughts_math": "one two",
    "thoughts_science": "one two",
    "swe_smith": "str_replace_editor(command: string",
}


@pytest.fixture(scope="module")
def tokenizer():
    folder = model_folder(BackboneConfig(model="embedded", name="miniature"), None)
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture
def mixture(tmp_path, monkeypatch):
    """A function to a configuration whose components have that many made rows."""
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))

    def make(num_rows: int = 12, **changes) -> CalibrationConfig:
        for name, row in ROWS.items():
            lines = [json.dumps(row) + "\n"] * num_rows
            (tmp_path / f"{name}.jsonl").write_text("".join(lines))
        settings = {
            "dataset": "reap_mixture",
            "data_folder": str(tmp_path),
            "components": tuple(COMPONENTS),
            "sequences_per_component": 3,
            "max_sequence_tokens": 32,
        }
        return CalibrationConfig.model_validate({**settings, **changes})

    return make


@pytest.mark.parametrize("component", list(COMPONENTS))
def test_each_component_is_rendered_by_the_chat_template(mixture, tokenizer, component):
    config = mixture(max_sequence_tokens=400)
    rows = component_sequences(config, component, tokenizer)
    assert len(rows) == 3
    assert TEXTS[component] in tokenizer.decode(list(rows[0]))


def test_a_folder_of_chats_has_a_component_each_file(mixture, tokenizer, tmp_path):
    function = {"name": "ls", "parameters": {"properties": {"folder": {"type": "string"}}}}
    rows = [{"messages": TURNS}, {"messages": TURNS, "tools": [{"function": function}]}]
    (tmp_path / "support.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    wanted = {"dataset": "chats", "components": ("support",), "sequences_per_component": 2}
    found = component_sequences(mixture(**wanted), "support", tokenizer)
    texts = sorted(tokenizer.decode(list(row)) for row in found)
    assert "count to two" in texts[1]
    assert texts[0].startswith("<|im_start|>system\nls(folder: string)")
    with pytest.raises(ValidationError, match=r"chats needs calibration\.data_folder"):
        mixture(**wanted, data_folder=None)


@pytest.mark.parametrize("packing", Packing)
def test_a_token_takes_four_bytes_of_host_memory(mixture, tokenizer, packing):
    """Lists take ten times as many: 2 GB of the whole REAP mixture, in each process of a host."""
    config = mixture(40, packing=packing, max_sequence_tokens=100)
    rows = component_sequences(config, "thoughts_math", tokenizer)
    assert all(isinstance(row, array) and row.itemsize == 4 for row in rows)


def test_packed_sequences_are_full_and_hold_the_same_tokens(mixture, tokenizer):
    isolated, opened = (
        component_sequences(
            mixture(40, packing=packing, max_sequence_tokens=100), "thoughts_math", tokenizer
        )
        for packing in (Packing.ISOLATED, Packing.OPEN)
    )
    assert [len(row) for row in opened] == [100] * 3
    assert len(isolated) > 3
    assert [token for row in isolated for token in row] == [t for row in opened for t in row]


def test_isolated_documents_do_not_see_each_other(mixture, tokenizer, tiny_decoder):
    """Statistics equal those of each document alone, in a model with recurrent layers too."""
    model = tiny_decoder("hybrid")
    config = mixture(40, packing=Packing.ISOLATED, max_sequence_tokens=100)
    rows = component_sequences(config, "thoughts_math", tokenizer)
    rows = [[token % 64 for token in row] for row in rows]
    with observed(model, family := backbone_for("qwen3_5_moe_text"), family.gate_rule({})) as seen:
        together = [seen.observe(first_batch(sorted(rows, key=len, reverse=True), 10**6))]
        alone = [seen.observe(first_batch([row], 64)) for row in rows]
    total = sum(alone[1:], start=alone[0])
    assert torch.equal(together[0].tokens_LE, total.tokens_LE)
    torch.testing.assert_close(together[0].gate_norm_LE, total.gate_norm_LE, rtol=2e-6, atol=2e-6)


def test_a_mixture_that_is_too_small_stops_unless_it_may_be_short(mixture, tokenizer, caplog):
    with pytest.raises(ConfigError, match=r"thoughts_code gives 2 .*asks for 3.*allow_short"):
        component_sequences(mixture(2), "thoughts_code", tokenizer)
    short = mixture(2, allow_short=True)
    assert len(component_sequences(short, "thoughts_code", tokenizer)) == 2
    assert "2 of 3 sequences" in caplog.text


@pytest.mark.parametrize("allow_short", [False, True])
def test_the_remedy_of_no_sequence_at_all_is_not_to_ask_for_fewer(
    mixture, tokenizer, tmp_path, allow_short
):
    config = mixture(1, packing=Packing.OPEN, allow_short=allow_short, max_sequence_tokens=999)
    with pytest.raises(ConfigError, match=r"gives 0 .* asks for 3\. Give it .* to none"):
        component_sequences(config, "thoughts_code", tokenizer)
    config = mixture(allow_short=allow_short)
    (tmp_path / "thoughts_code.jsonl").write_text('{"messages": [{"role": "user"}]}\n')
    with pytest.raises(ConfigError, match=r"gives 0 .* asks for 3\. No row of its data can be"):
        component_sequences(config, "thoughts_code", tokenizer)


def test_the_seed_orders_the_rows(mixture, tokenizer, tmp_path):
    config = mixture(max_sequence_tokens=400)
    lines = [json.dumps({"instruction": f"add {n}", "output": "x"}) + "\n" for n in range(50)]
    (tmp_path / "evol_codealpaca.jsonl").write_text("".join(lines))

    def drawn(seed):
        changed = config.model_copy(update={"seed": seed})
        return component_sequences(changed, "evol_codealpaca", tokenizer)

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_rows_of_another_form_are_left_out_and_counted(mixture, tokenizer, tmp_path, caplog):
    config = mixture(max_sequence_tokens=400)
    good, bad = ROWS["swe_smith"], {**ROWS["swe_smith"], "messages": "not JSON"}
    lines = [json.dumps(row) + "\n" for row in (good, bad, good, good)]
    (tmp_path / "swe_smith.jsonl").write_text("".join(lines))
    assert len(component_sequences(config, "swe_smith", tokenizer)) == 3
    assert "swe_smith: 1 rows so far left out" in caplog.text


def test_rows_that_the_models_template_refuses_are_left_out_too(mixture, tokenizer, caplog):
    """Families whose template knows no system turn raise from within it."""
    strict = copy.deepcopy(tokenizer)
    strict.chat_template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system turn') }}{% endif %}"
        + tokenizer.chat_template
    )
    with pytest.raises(ConfigError, match="swe_smith gives 0 sequences"):
        component_sequences(mixture(), "swe_smith", strict)
    assert "12 rows so far left out: TemplateError('no system turn')" in caplog.text
    assert len(component_sequences(mixture(), "thoughts_math", strict)) == 3


def test_data_that_cannot_be_had_is_named(mixture, tokenizer, tmp_path, monkeypatch):
    config = mixture()
    (tmp_path / "swe_smith.jsonl").unlink()
    with pytest.raises(ConfigError, match=r"swe_smith\.jsonl.*found 0"):
        component_sequences(config, "swe_smith", tokenizer)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    from_hub = config.model_copy(update={"data_folder": None})
    with pytest.raises(ConfigError, match=r"swe_smith .*SWE-smith.*data_folder"):
        component_sequences(from_hub, "swe_smith", tokenizer)
