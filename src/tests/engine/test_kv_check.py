"""Checkpoints and servers that must not hand each other their cache, by the field that differs."""

import json
import shutil
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from slimwise.engine.config import ServingConfig
from slimwise.engine.kv_check import refuse_other_cache, refuse_other_geometry
from slimwise.errors import CheckpointError, EngineError
from slimwise.paths import EMBEDDED_CHECKPOINT

from ..played_server import played_server

SERVING = ServingConfig(max_model_len_tokens=64)
METRIC = "vllm:cache_config_info"


@pytest.fixture
def checkpoint(tmp_path):
    """A function that copies the miniature's small files, its configuration changed."""

    def copy(name: str, **changes: object) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for file in ("tokenizer.json", "chat_template.jinja"):
            shutil.copy(EMBEDDED_CHECKPOINT / file, folder)
        config = json.loads((EMBEDDED_CHECKPOINT / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))
        (folder / "model.safetensors").touch()
        return folder

    return copy


def test_another_expert_count_is_no_reason_to_refuse(checkpoint):
    refuse_other_geometry(checkpoint("full"), checkpoint("pruned", num_experts=32), SERVING)


@pytest.mark.parametrize(
    "changes",
    [
        {"head_dim": 128},
        {"num_key_value_heads": 4},
        {"num_hidden_layers": 4},
        {"layer_types": ["full_attention"] * 8},
        {"linear_value_head_dim": 128},
        {"linear_conv_kernel_dim": 3},
        {"mamba_ssm_dtype": "bfloat16"},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}},
        {"vocab_size": 600},
    ],
)
def test_a_field_that_shapes_the_cache_is_named_with_both_values(checkpoint, changes):
    full, pruned = checkpoint("full"), checkpoint("pruned", **changes)
    ((field, value),) = changes.items()
    with pytest.raises(CheckpointError) as refusal:
        refuse_other_geometry(full, pruned, SERVING)
    assert str(refusal.value).startswith(f"{field} is ")
    assert repr(value) in str(refusal.value)


def test_stated_types_count_only_where_the_servers_take_them_from_there(checkpoint):
    full, pruned = checkpoint("full"), checkpoint("pruned", dtype="float32")
    refuse_other_geometry(full, pruned, SERVING)
    with pytest.raises(CheckpointError, match=r"dtype is 'bfloat16' in .* and 'float32' in"):
        refuse_other_geometry(full, pruned, SERVING.model_copy(update={"dtype": "auto"}))


@pytest.mark.parametrize("name", ["tokenizer.json", "chat_template.jinja"])
def test_another_reading_of_prompts_is_refused(checkpoint, name):
    full, pruned = checkpoint("full"), checkpoint("pruned")
    with (pruned / name).open("a") as text:
        text.write(" ")
    with pytest.raises(CheckpointError, match=f"{name} is '[0-9a-f]+'"):
        refuse_other_geometry(full, pruned, SERVING)


def test_another_family_is_refused(checkpoint):
    other = {"model_type": "qwen3_moe"}
    with pytest.raises(CheckpointError, match=r"the family is 'qwen3_5_moe_text' in .*'qwen3_moe'"):
        refuse_other_geometry(checkpoint("full"), checkpoint("other", **other), SERVING)


def reporting(metric: str = METRIC, **labels: str) -> AbstractContextManager[str]:
    """The address of a server whose metrics show a cache with these labels."""
    shown = ",".join(f'{key}="{value}"' for key, value in labels.items())
    text = f"# TYPE {metric} gauge\n{metric}{{{shown}}} 1.0\n"
    return played_server(lambda asked: (200, text))


def test_running_servers_with_other_blocks_are_refused():
    with (
        reporting(block_size="16", enable_prefix_caching="True") as prefill,
        reporting(block_size="32", enable_prefix_caching="False") as decode,
        pytest.raises(EngineError, match=rf"block_size is 16 on .*{prefill} and 32 on {decode}"),
    ):
        refuse_other_cache([prefill], [decode])


def test_a_decode_server_with_a_cache_of_its_own_is_refused_and_a_prefill_server_is_not():
    with (
        reporting(block_size="16", enable_prefix_caching="True") as keeps,
        reporting(block_size="16", enable_prefix_caching="False") as forgets,
    ):
        refuse_other_cache([keeps], [forgets])
        with pytest.raises(EngineError, match=f"{keeps} keeps prompts of its own"):
            refuse_other_cache([forgets], [keeps])


def test_a_server_of_another_kind_is_refused():
    with reporting("other:info") as url, pytest.raises(EngineError, match="has no vllm:"):
        refuse_other_cache([url], [url])
