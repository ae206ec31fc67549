"""A hybrid exported without its multi-token prediction head serves, drafted tokens or not."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from slimwise.inspect.config import BackboneConfig
from slimwise.inspect.run import run as inspect_backbone

from .conftest import export, save_keep_set
from .own_process import answers_of_own_process

pytestmark = pytest.mark.slow

NUM_TOKENS = 24
NUM_HEAD_EXPERTS = 24  # more than the trunk has
DRAFTS = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2}


@pytest.fixture(scope="module")
def without_head(tiny_backbone, tmp_path_factory):
    """The pruned folder of a checkpoint that had a head with experts of its own."""
    root = tmp_path_factory.mktemp("mtp")
    folder, pruned = root / "full", root / "pruned"
    shutil.copytree(tiny_backbone("qwen3_5_moe").folder, folder)
    head = {"mtp.layers.0.mlp.experts.gate_up_proj": torch.ones(NUM_HEAD_EXPERTS, 8, 8)}
    weights = folder / "model.safetensors"
    save_file({**load_file(weights), **head}, weights, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "mtp_num_hidden_layers": 1}))
    inspect_backbone(
        BackboneConfig(model=str(folder), name="tiny"), out=folder.with_suffix(".json")
    )
    export(folder, save_keep_set(root / "half.json", folder), pruned)
    return pruned


@pytest.mark.parametrize("options", [{}, {"speculative_config": DRAFTS}], ids=["alone", "drafts"])
def test_a_trunk_without_its_head_serves(without_head, prompts, options, tmp_path):
    assert json.loads((without_head / "config.json").read_text())["mtp_num_hidden_layers"] == 0
    answers, _, _ = answers_of_own_process(
        without_head,
        prompts,
        ("full",),
        environment={},
        scratch=tmp_path,
        sampling={"max_tokens": NUM_TOKENS},
        dtype="bfloat16",
        enable_prefix_caching=False,  # with drafts it needs Triton
        **options,
    )
    assert [len(answer) for answer in answers["full"]] == [NUM_TOKENS] * len(prompts)
