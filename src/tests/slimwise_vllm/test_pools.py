import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch

from slimwise.artifacts.keep_set import KeepSetRecord, read_keep_set, write_keep_set
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.artifacts.trained_record import TrainedRecord, write_trained_record
from slimwise.artifacts.trained_tensors import write_trained_tensors
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion, Distillation
from slimwise.errors import ArtifactError, ConfigError, KeepSetError
from slimwise.provenance import Provenance
from slimwise_vllm.pools import load_pools, pruned_experts
from slimwise_vllm.settings import PluginSettings


def write(path: Path, kept, num_experts=4, top_k=1) -> Path:
    record = KeepSetRecord(KeepSet(kept, num_experts, top_k), Criterion.REAP, "digest", "tiny")
    write_keep_set(path, record, Provenance("", "", "", {}, ""))
    return path


def train(folder: Path, keep_set: Path, *, scale: float = 1, **changes: Any) -> Path:
    """A folder as stage distill-decoder writes it for that keep set."""
    chosen = read_keep_set(keep_set)
    folder.mkdir()
    write_trained_tensors(folder, {"model.norm.weight": scale * torch.ones(2)})
    fields = {
        "backbone_digest": chosen.backbone_digest,
        "keep_set_digest": chosen.keep_set.digest,
    } | changes
    record = TrainedRecord(decoder="", rule=Distillation.UNIFORM, seed=0, recipe={}, **fields)
    write_trained_record(folder, record, Provenance("", "", "", {}, ""))
    return folder


def load(trained: Mapping[str, Path] = MappingProxyType({}), **paths: Path):
    pools = {
        name: PoolFiles(keep_set=path, trained=trained.get(name)) for name, path in paths.items()
    }
    return load_pools(PluginSettings(pools=pools, default_pool=next(iter(paths))))


def test_pool_zero_is_full_and_every_keep_set_another(tmp_path):
    a = write(tmp_path / "a.json", ((0, 3), (1, 2)))
    b = write(tmp_path / "b.json", ((2,), (0, 1, 2)))
    pools = load(a=a, b=b)
    assert pools.names == ("full", "a", "b")
    assert pools.num_kept == (8, 4, 4)
    assert pools.index("b") == 2
    assert pruned_experts(pools).tolist() == [
        [[False] * 4, [False, True, True, False], [True, True, False, True]],
        [[False] * 4, [True, False, False, True], [False, False, False, True]],
    ]


def test_a_digest_tells_the_content_of_a_pool_not_its_name(tmp_path):
    same = load(
        a=write(tmp_path / "a.json", ((0, 3),)),
        b=write(tmp_path / "b.json", ((0, 3),)),
        c=write(tmp_path / "c.json", ((0, 2),)),
    )
    full, a, b, c = same.digests
    assert full == ""
    assert a == b != c


def test_a_digest_tells_what_was_trained_too(tmp_path):
    a = write(tmp_path / "a.json", ((0, 3),))
    folders = {
        name: train(tmp_path / name, a, scale=scale)
        for name, scale in (("kd", 1), ("same", 1), ("other", 2))
    }
    full, plain, kd, same, other = load(folders, plain=a, kd=a, same=a, other=a).digests
    assert kd == same
    assert len({full, plain, kd, other}) == 4


@pytest.mark.parametrize("kind", ["backbone_digest", "keep_set_digest"])
def test_tensors_trained_with_another_model_or_keep_set_are_refused(tmp_path, kind):
    a = write(tmp_path / "a.json", ((0, 3),))
    changes: dict[str, Any] = {kind: "another"}
    folder = train(tmp_path / "kd", a, **changes)
    words = kind.removesuffix("_digest").replace("_", " ").replace("backbone", "model")
    with pytest.raises(KeepSetError, match=rf"pool 'a': .*kd was trained with a {words} of digest"):
        load({"a": folder}, a=a)


def test_changed_or_missing_tensors_are_refused(tmp_path):
    a = write(tmp_path / "a.json", ((0, 3),))
    folder = train(tmp_path / "kd", a)
    write_trained_tensors(folder, {"model.norm.weight": torch.zeros(2)})
    with pytest.raises(ArtifactError, match=r"trained\.safetensors has changed"):
        load({"a": folder}, a=a)
    with pytest.raises(ArtifactError, match=r"cannot read .*absent/manifest\.json"):
        load({"a": tmp_path / "absent"}, a=a)


def test_an_unknown_pool_is_named_with_those_there_are(tmp_path):
    pools = load(a=write(tmp_path / "a.json", ((0, 3),)))
    with pytest.raises(ConfigError, match=r"'b' does not exist: choose one of .*'full', 'a'"):
        pools.index("b")


def test_keep_sets_of_two_models_are_refused(tmp_path):
    a = write(tmp_path / "a.json", ((0, 3),))
    b = write(tmp_path / "b.json", ((0, 3),), num_experts=8)
    with pytest.raises(KeepSetError, match="'b' has layers x experts / top-k 1 x 8 / 1"):
        load(a=a, b=b)


@pytest.mark.parametrize("content", [None, "{", json.dumps({"schema": "other/1"})])
def test_a_bad_keep_set_file_is_named(tmp_path, content):
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ArtifactError, match=r"bad\.json"):
        load(a=path)
