import subprocess
import sys

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file, save_file

from slimwise.artifacts.expert_scores import read_expert_scores, write_expert_scores
from slimwise.artifacts.parquet_rows import read_rows, write_rows
from slimwise.artifacts.routing_stats import read_routing_stats, write_routing_stats
from slimwise.artifacts.routing_sums import SCHEMA, sums_digest
from slimwise.core.routing_stats import RoutingStats
from slimwise.errors import ArtifactError


@pytest.fixture
def stats() -> RoutingStats:
    generator = torch.Generator().manual_seed(0)
    return RoutingStats(
        *(torch.rand(2, 4, generator=generator, dtype=torch.float64) for _ in range(6))
    )


def _damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "truncated":
        content = content[: len(content) // 2]
    elif how == "empty":
        content = bytearray()
    else:
        content[:64] = b"\xff" * 64
    path.write_bytes(content)


def test_scores_round_trip_in_order(tmp_path, scores, provenance):
    path = tmp_path / "scores.parquet"
    write_expert_scores(path, scores.sample(frac=1, random_state=0), provenance)
    pd.testing.assert_frame_equal(read_expert_scores(path), scores)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda frame: frame.drop(index=3), "lacks rows"),
        (lambda frame: pd.concat([frame, frame.tail(1)]), "lacks rows"),
        (lambda frame: frame.head(0), "lacks rows"),
        (
            lambda frame: frame.assign(reap=frame["reap"].where(frame.index != 5)),
            "layer 1, expert 1",
        ),
        (lambda frame: frame.assign(mass=frame["mass"] - 1), "layer 0, expert 0"),
    ],
)
def test_incomplete_or_impossible_scores_are_refused(tmp_path, scores, provenance, spoil, named):
    path = tmp_path / "scores.parquet"
    write_expert_scores(path, spoil(scores), provenance)
    with pytest.raises(ArtifactError, match=named):
        read_expert_scores(path)


@pytest.mark.parametrize("how", ["truncated", "empty", "overwritten"])
def test_damaged_scores_are_refused(tmp_path, scores, provenance, how):
    path = tmp_path / "scores.parquet"
    write_expert_scores(path, scores, provenance)
    _damage(path, how)
    with pytest.raises(ArtifactError, match=r"scores\.parquet"):
        read_expert_scores(path)


def test_one_flipped_byte_in_a_page_is_noticed(tmp_path, scores, provenance):
    path = tmp_path / "scores.parquet"
    write_expert_scores(path, scores, provenance)
    content = bytearray(path.read_bytes())
    content[len(content) // 8] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"scores\.parquet"):
        read_expert_scores(path)


def test_rows_of_another_schema_or_with_other_columns_are_refused(tmp_path, scores, provenance):
    path = tmp_path / "rows.parquet"
    write_rows(path, scores, "slimwise.test/1", provenance)
    with pytest.raises(ArtifactError, match=r"'slimwise\.test/1', expected"):
        read_expert_scores(path)
    with pytest.raises(ArtifactError, match="expected layer, expert"):
        read_rows(path, "slimwise.test/1", ["layer", "expert"])


def test_missing_files_are_refused(tmp_path):
    with pytest.raises(ArtifactError, match="absent"):
        read_expert_scores(tmp_path / "absent.parquet")
    with pytest.raises(ArtifactError, match="absent"):
        read_routing_stats(tmp_path / "absent.safetensors")


def test_sums_round_trip_exactly(tmp_path, stats, provenance):
    path = tmp_path / "stats.safetensors"
    write_routing_stats(path, {"maths": stats}, provenance)
    read = read_routing_stats(path)["maths"]
    assert torch.equal(read.gate_norm_LE, stats.gate_norm_LE)
    assert torch.equal(read.tokens_LE, stats.tokens_LE)


@pytest.mark.parametrize("how", ["truncated", "empty", "overwritten"])
def test_damaged_sums_are_refused(tmp_path, stats, provenance, how):
    path = tmp_path / "stats.safetensors"
    write_routing_stats(path, {"maths": stats}, provenance)
    _damage(path, how)
    with pytest.raises(ArtifactError, match=r"stats\.safetensors"):
        read_routing_stats(path)


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda sums: sums.pop("norm_LE"), "expected .*, norm_LE"),
        (lambda sums: sums.update(norm_LE=sums["norm_LE"][:, :3].contiguous()), "shape"),
        (lambda sums: sums.update(norm_LE=sums["norm_LE"].float()), "float64"),
        (lambda sums: sums["norm_LE"].fill_(torch.nan), "norm_LE"),
        (lambda sums: sums["tokens_LE"].sub_(2), "tokens_LE"),
    ],
)
def test_impossible_sums_are_refused(tmp_path, stats, provenance, spoil, named):
    path = tmp_path / "stats.safetensors"
    write_routing_stats(path, {"maths": stats}, provenance)
    sums = load_file(path)
    sums = {name.removeprefix("maths/"): tensor for name, tensor in sums.items()}
    spoil(sums)
    sums = {f"maths/{name}": tensor for name, tensor in sums.items()}
    digest = sums_digest({name: tensor.numpy() for name, tensor in sums.items()})
    save_file(sums, path, {"schema": SCHEMA, "components": '["maths"]', "sha256": digest})
    with pytest.raises(ArtifactError, match=named):
        read_routing_stats(path)


def test_what_notebooks_read_does_not_load_torch():
    modules = "expert_scores, keep_set, backbone_record, manifest, parquet_rows, routing_sums"
    code = (
        f"import sys; from slimwise.artifacts import {modules}; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
