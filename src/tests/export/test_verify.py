"""Each way in which a finished folder can stop being the planned checkpoint."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from slimwise.artifacts.weight_files import INDEX_NAME, read_weights
from slimwise.errors import CheckpointError
from slimwise.export.plan import PlannedTensor
from slimwise.export.verify import verify_checkpoint

EXPERT = "model.layers.0.mlp.experts.0.up_proj.weight"


@pytest.fixture
def checkpoint(tiny_checkpoint, export):
    """A pruned folder in several shards, and its plan."""
    folder = export(tiny_checkpoint("plain"), max_shard_gib=2**-16)
    planned = [
        PlannedTensor(name, entry.shape, entry, ((0, entry.num_bytes),))
        for name, entry in read_weights(folder).items()
    ]
    return folder, planned


def _shards(folder):
    return sorted(folder.glob("*.safetensors"))


def _add_stale_shard(folder):
    save_file({"stale": torch.ones(1)}, folder / "model-00009-of-00009.safetensors")


def _repeat_a_name(folder):
    first, second, *_ = _shards(folder)
    name, tensor = next(iter(load_file(first).items()))
    save_file({**load_file(second), name: tensor}, second)


def _remove_a_shard(folder):
    _shards(folder)[1].unlink()


def _truncate_a_shard(folder):
    path = _shards(folder)[1]
    path.write_bytes(path.read_bytes()[:-8])


def _cut_a_header(folder):
    path = _shards(folder)[1]
    path.write_bytes(path.read_bytes()[:20])


def _edit_index(change):
    def edit(folder):
        index = json.loads((folder / INDEX_NAME).read_text())
        change(index)
        (folder / INDEX_NAME).write_text(json.dumps(index))

    return edit


def _rename_a_tensor(folder):
    path = _shards(folder)[0]
    tensors = load_file(path)
    name = next(iter(tensors))
    tensors[f"{name}2"] = tensors.pop(name)
    save_file(tensors, path)
    _edit_index(lambda i: i["weight_map"].update({f"{name}2": i["weight_map"].pop(name)}))(folder)


def _change_a_type(folder):
    path = _shards(folder)[0]
    save_file({name: tensor.int() for name, tensor in load_file(path).items()}, path)


def _change_the_count(folder):
    config = json.loads((folder / "config.json").read_text())
    key = "num_local_experts" if "num_local_experts" in config else "num_experts"
    (folder / "config.json").write_text(json.dumps({**config, key: 7}))


def test_the_untouched_folder_passes(checkpoint):
    verify_checkpoint(*checkpoint)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (_add_stale_shard, "model-00009-of-00009"),
        (_repeat_a_name, r"model-00002.*holds .*which .*says is in model-00001"),
        (_remove_a_shard, "model-00002"),
        (_truncate_a_shard, r"model-00002.*truncated"),
        (_cut_a_header, "model-00002"),
        (_edit_index(lambda index: index["weight_map"].pop(EXPERT)), "does not list"),
        (_edit_index(lambda index: index["weight_map"].update(x="absent.safetensors")), "absent"),
        (_edit_index(lambda index: index["weight_map"].update(x="../a.safetensors")), "outside"),
        (_edit_index(lambda index: index["metadata"].update(total_size=1)), "states 1 bytes"),
        (_edit_index(lambda index: index.pop("weight_map")), "weight_map"),
        (_rename_a_tensor, "is missing|was not planned"),
        (_change_a_type, "I32"),
        (_change_the_count, "7 experts"),
    ],
)
def test_a_spoilt_folder_fails_by_name(checkpoint, spoil, named):
    folder, planned = checkpoint
    spoil(folder)
    with pytest.raises(CheckpointError, match=named):
        verify_checkpoint(folder, planned)
