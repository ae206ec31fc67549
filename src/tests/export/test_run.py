import itertools
import json
import os
import shutil
import subprocess
from collections import namedtuple
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from slimwise.artifacts.keep_set import read_keep_set
from slimwise.artifacts.manifest import CHECKPOINT_SCHEMA, verify_manifest
from slimwise.artifacts.weight_files import read_weights
from slimwise.backbones.base import ExpertStack, SingleExpert
from slimwise.backbones.registry import inspect_checkpoint
from slimwise.errors import ArtifactError, CheckpointError, KeepSetError

ALL = (tuple(range(16)),) * 2
KEPT = ((0, 1, 5, 6, 9, 15), (2, 3, 4, 7, 11, 12))
EXPERT = "model.layers.1.mlp.experts.{}.up_proj.weight"


def _edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _edit_weights(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)


@pytest.mark.parametrize("fused", [False, True])
def test_keeping_everything_is_a_copy(tiny_checkpoint, export, kind, fused):
    folder = tiny_checkpoint(kind, fused=fused)
    pruned = export(folder, ALL)
    for name in os.listdir(folder):
        assert (pruned / name).read_bytes() == (folder / name).read_bytes()


def test_kept_rows_are_byte_equal_in_both_layouts(tiny_checkpoint, export):
    split, fused = tiny_checkpoint("plain"), tiny_checkpoint("plain", fused=True)
    before = load_file(split / "model.safetensors")
    after = load_file(export(split) / "model.safetensors")
    assert sum("experts" in name for name in after) == 2 * 6 * 3
    for position, expert in enumerate(KEPT[1]):
        assert torch.equal(after[EXPERT.format(position)], before[EXPERT.format(expert)])
    name = "model.layers.0.mlp.experts.gate_up_proj"
    before = load_file(fused / "model.safetensors")
    after = load_file(export(fused) / "model.safetensors")
    assert torch.equal(after[name], before[name][list(KEPT[0])])


def test_manifest_comes_last_and_other_files_travel(tiny_checkpoint, export):
    folder = tiny_checkpoint("hybrid")
    (folder / "templates").mkdir()
    (folder / "templates" / "chat.jinja").write_text("{{ messages }}")
    (folder / "pytorch_model.bin").touch()
    pruned = export(folder)
    payload = verify_manifest(pruned, CHECKPOINT_SCHEMA)
    assert payload["num_kept"] == 6
    assert set(payload["files"]) == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "templates/chat.jinja",
        "tokenizer.json",
    }


def test_unknown_configuration_keys_stay(tiny_checkpoint, export):
    folder = tiny_checkpoint("wrapper")
    before = json.loads((folder / "config.json").read_text())
    before["text_config"]["mamba_ssm_dtype"] = "float32"
    _edit_config(folder, **before)
    after = json.loads((export(folder) / "config.json").read_text())
    before["text_config"] |= {"num_experts": 6, "mtp_num_hidden_layers": 0}
    assert after == before


def test_shards_hold_each_tensor_once(tiny_checkpoint, export):
    folder = tiny_checkpoint("plain")
    whole = load_file(export(folder) / "model.safetensors")
    pruned = export(folder, max_shard_gib=2**-16)
    shards = sorted(pruned.glob("*.safetensors"))
    assert len(shards) > 2
    parts = [load_file(path) for path in shards]
    assert sum(map(len, parts)) == len(whole)
    assert all(torch.equal(tensor, whole[name]) for part in parts for name, tensor in part.items())
    sizes = [sum(tensor.nbytes for tensor in part.values()) for part in parts]
    assert all(size <= 2**14 for size in sizes)
    again = export(pruned, (tuple(range(4)),) * 2)
    assert len(read_weights(again)) == len(whole) - 2 * 2 * 3


def test_multi_token_prediction_head_is_dropped_with_its_experts(tiny_checkpoint, export):
    folder = tiny_checkpoint("wrapper")
    # More experts than the trunk has, as where the trunk alone was pruned before.
    head = {"mtp.layers.0.mlp.experts.gate_up_proj": torch.ones(24, 16, 32)}
    _edit_weights(folder, lambda tensors: tensors.update(head))
    assert head.keys() < read_weights(export(folder, ALL)).keys()
    pruned = export(folder)
    assert not any(name.startswith("mtp.") for name in read_weights(pruned))
    assert any("visual" in name for name in read_weights(pruned))


def _quantise(tensors):
    for name in [name for name in tensors if "experts." in name]:
        tensors[name] = tensors[name].to(torch.float8_e4m3fn)
        rows = tensors[name].shape[:-2]
        tensors[f"{name}_scale_inv"] = torch.rand(*rows, 1, 1) + 0.5


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("quantised", [False, True])
def test_every_byte_is_copied_sliced_or_renumbered(tiny_checkpoint, export, kind, fused, quantised):
    folder = tiny_checkpoint(kind, fused=fused)
    if quantised:
        _edit_weights(folder, _quantise)
    before, after = load_file(folder / "model.safetensors"), {}
    for name, tensor in before.items():
        match inspect_checkpoint(folder).backbone.tensor_role(name):
            case ExpertStack(layer=layer):
                after[name] = tensor[list(KEPT[layer])]
            case SingleExpert(layer=layer, expert=expert) as role:
                if expert in KEPT[layer]:
                    after[role.renumbered(KEPT[layer].index(expert))] = tensor
            case _:
                after[name] = tensor
    found = load_file(export(folder) / "model.safetensors")
    assert found.keys() == after.keys()
    for name, tensor in after.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name].view(torch.uint8), tensor.view(torch.uint8))


def test_tensors_of_no_values_and_of_one_travel(tiny_checkpoint, export):
    folder = tiny_checkpoint("plain")
    odd = {"model.empty": torch.empty(0, 4), "model.one": torch.tensor(2, dtype=torch.int8)}
    _edit_weights(folder, lambda tensors: tensors.update(odd))
    for max_shard_gib in (1.0, 2**-30):
        pruned = export(folder, max_shard_gib=max_shard_gib)
        shards = [load_file(path) for path in pruned.glob("*.safetensors")]
        found = {name: tensor for shard in shards for name, tensor in shard.items()}
        for name, tensor in odd.items():
            assert found[name].dtype == tensor.dtype
            assert torch.equal(found[name], tensor)


def test_biases_of_a_router_are_sliced_with_its_rows(tiny_checkpoint, export):
    folder = tiny_checkpoint("plain")
    name = "model.layers.{}.mlp.gate.{}".format
    places = list(itertools.product((0, 1), ("bias", "e_score_correction_bias")))
    biases = {place: torch.randn(16) for place in places}
    _edit_weights(folder, lambda t: t.update({name(*place): biases[place] for place in places}))
    found = load_file(export(folder) / "model.safetensors")
    for layer, part in places:
        assert torch.equal(found[name(layer, part)], biases[layer, part][list(KEPT[layer])])


def test_experts_one_by_one_in_a_family_that_fuses_them(tiny_checkpoint, export):
    folder = tiny_checkpoint("parallel")
    _edit_weights(folder, _split_experts)
    found = load_file(export(folder) / "model.safetensors")
    name = "model.layers.1.experts.{}.up_proj.weight"
    before = load_file(folder / "model.safetensors")
    assert torch.equal(found[name.format(4)], before[name.format(11)])
    assert name.format(6) not in found
    scale = "model.layers.1.router.per_expert_scale"
    assert torch.equal(found[scale], before[scale][list(KEPT[1])])


def _split_experts(tensors):
    for name in [name for name in tensors if name.endswith("experts.gate_up_proj")]:
        stem = name.removesuffix("gate_up_proj")
        downs = tensors.pop(f"{stem}down_proj")
        for expert, gate_up in enumerate(tensors.pop(name)):
            gate, up = gate_up.chunk(2)
            parts = {"gate_proj": gate, "up_proj": up, "down_proj": downs[expert]}
            tensors |= {f"{stem}{expert}.{part}.weight": parts[part] for part in parts}


@pytest.mark.parametrize("value", [torch.inf, torch.nan, 0.0, -1.0])
def test_impossible_scales_are_refused(tiny_checkpoint, export, value):
    folder = tiny_checkpoint("plain")
    name = f"{EXPERT.format(11)}_scale_inv"
    _edit_weights(folder, _quantise)
    _edit_weights(folder, lambda tensors: tensors[name].fill_(value))
    with pytest.raises(CheckpointError, match="scale"):
        export(folder)


def test_a_nan_weight_is_refused_and_nothing_is_left(tiny_checkpoint, export, tmp_path):
    folder = tiny_checkpoint("hybrid")
    _edit_weights(folder, lambda tensors: tensors["model.norm.weight"].fill_(torch.nan))
    with pytest.raises(CheckpointError, match=r"model\.norm\.weight"):
        export(folder)
    assert not (tmp_path / "pruned").exists()
    assert not list(tmp_path.glob(".pruned*"))


def test_shards_behind_links_are_read_and_written_as_files(tiny_checkpoint, export):
    folder = export(tiny_checkpoint("plain"), ALL, max_shard_gib=2**-16)
    linked, blobs = folder.parent / "linked", folder.parent / "blobs"
    folder.rename(blobs)
    linked.mkdir()
    for number, path in enumerate(sorted(blobs.iterdir())):
        (linked / path.name).symlink_to(path.rename(blobs / f"blob{number}"))
    pruned = export(linked)
    assert not any(path.is_symlink() for path in pruned.iterdir())
    shards = [load_file(path) for path in pruned.glob("*.safetensors")]
    tensors = {name: tensor for shard in shards for name, tensor in shard.items()}
    assert EXPERT.format(5) in tensors
    assert EXPERT.format(6) not in tensors


def test_what_a_killed_export_left_is_removed(tiny_checkpoint, export, tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead, alive = (tmp_path / f".pruned.{number}" for number in (ended.pid, os.getppid()))
    for leftover in (dead, alive):
        leftover.mkdir()
        (leftover / "model.safetensors").touch()
    export(tiny_checkpoint("plain"))
    assert not dead.exists()
    assert alive.exists()


def test_an_uneven_expert_parallel_split_is_warned_of(tiny_checkpoint, export, caplog):
    folder = tiny_checkpoint("plain")
    export(folder, expert_parallel_size=3)
    assert not caplog.records
    export(folder, expert_parallel_size=4)
    assert "6 kept experts do not divide by export.expert_parallel_size = 4" in caplog.text


def test_an_earlier_export_is_replaced(tiny_checkpoint, export):
    folder = tiny_checkpoint("plain")
    (export(folder, max_shard_gib=2**-16) / "stale").touch()
    pruned = export(folder)
    assert [path.name for path in pruned.glob("*.safetensors")] == ["model.safetensors"]
    assert not (pruned / "stale").exists()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda t: t.pop(EXPERT.format(3)), r"layer 1, expert 3 lacks tensor up_proj\.weight"),
        (
            lambda t: t.update({"model.layers.1.mlp.xperts": t.pop(EXPERT.format(3))}),
            "layer 1, expert 3 lacks",
        ),
        (lambda t: [t.pop(n) for n in list(t) if "1.mlp.experts.7." in n], "expert 7 has no"),
        (lambda t: t.update({EXPERT.format(16): torch.ones(8, 32)}), "expert 16 is not in"),
        (lambda t: t.update({EXPERT.format(2): t[EXPERT.format(2)][:4]}), r"shape \[4, 32\]"),
        (lambda t: t.pop("model.layers.0.mlp.gate.weight"), r"layer 0 lacks tensor gate\.weight"),
        (
            lambda t: t.update({"model.layers.0.mlp.gate.weight": torch.ones(15, 32)}),
            r"shape \[15, 32\].* 16 experts",
        ),
        (
            lambda t: t.update({"model.layers.5.mlp.gate.weight": torch.ones(16, 32)}),
            "layer 5 has expert tensors",
        ),
        (
            lambda t: t.update({f"{EXPERT.format(3)}_scale_inv": torch.ones(1)}),
            "lacks tensor up_proj.weight_scale_inv",
        ),
    ],
)
def test_expert_tensors_that_disagree_are_hard_errors(tiny_checkpoint, export, change, named):
    folder = tiny_checkpoint("plain")
    _edit_weights(folder, change)
    with pytest.raises(CheckpointError, match=named):
        export(folder)


def test_unequal_counts_name_the_layers(tiny_checkpoint, export):
    with pytest.raises(KeepSetError, match=r"layer 0 keeps 4, layer 1 5"):
        export(tiny_checkpoint("plain"), (range(4), range(5)))


def test_keep_sets_of_other_models_are_refused(tiny_checkpoint, export):
    with pytest.raises(KeepSetError, match=r"for 3 layers x 16 experts.*has 2 x 16"):
        export(tiny_checkpoint("plain"), (range(4),) * 3)


def test_keep_sets_of_another_training_are_refused(tiny_checkpoint, export, monkeypatch):
    folder = tiny_checkpoint("plain")
    monkeypatch.setattr("slimwise.export.run.read_keep_set", _with_other_digest)
    with pytest.raises(KeepSetError, match="000000000000"):
        export(folder)


def _with_other_digest(path):
    return replace(read_keep_set(path), backbone_digest="0" * 64)


def test_a_full_disk_is_told_before_writing(tiny_checkpoint, export, tmp_path, monkeypatch):
    usage = namedtuple("usage", ["free"])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(10**6))
    with pytest.raises(ArtifactError, match=r"needs 0\.06 GiB.*0\.00 GiB free"):
        export(tiny_checkpoint("plain"))
    assert not (tmp_path / "pruned").exists()
