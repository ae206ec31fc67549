import json
from pathlib import Path

import pytest

from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion
from slimwise.errors import ArtifactError, ConfigError, KeepSetError
from slimwise.provenance import Provenance
from slimwise_vllm.pools import load_pools, pruned_experts
from slimwise_vllm.settings import PluginSettings


def write(path: Path, kept, num_experts=4, top_k=1) -> Path:
    record = KeepSetRecord(KeepSet(kept, num_experts, top_k), Criterion.REAP, "digest", "tiny")
    write_keep_set(path, record, Provenance("", "", "", {}, ""))
    return path


def load(**paths: Path):
    pools = {name: PoolFiles(keep_set=path) for name, path in paths.items()}
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
