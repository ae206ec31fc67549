"""An export in a process of its own: what it costs in memory, and what killing it leaves."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file, save_file

from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion
from slimwise.export.verify import verify_folder
from slimwise.provenance import Provenance

SHARD_GIB = 0.125
KEPT = ((0, 1, 5, 6, 9, 15), (2, 3, 4, 7, 11, 12))

PROGRAM = """
import resource, sys
from pathlib import Path
from slimwise.export.config import ExportConfig
from slimwise.export.run import run

def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

before = peak_bytes()
backbone, keep_set, out, shard_gib = sys.argv[1:]
config = ExportConfig(max_shard_gib=float(shard_gib))
run(config, backbone=Path(backbone), keep_set=Path(keep_set), out=Path(out))
print(peak_bytes() - before)
"""


@pytest.fixture
def arguments(tmp_path, tiny_checkpoint, inspected) -> list[str]:
    """The tiny model with a vocabulary that fills four shards, and a keep set for it."""
    folder = tiny_checkpoint("plain")
    weights = folder / "model.safetensors"
    filler = {
        f"model.filler.{n}": torch.ones(2**20, int(SHARD_GIB * 2**8), dtype=torch.float32)
        for n in range(4)
    }
    save_file({**load_file(weights), **filler}, weights)
    record = read_backbone_record(backbone := inspected(folder))
    keep_set = tmp_path / "keep.json"
    chosen = KeepSet(KEPT, 16, top_k=4)
    write_keep_set(
        keep_set,
        KeepSetRecord(chosen, Criterion.REAP, record.digest, record.model_type),
        Provenance("", "", "", {}, ""),
    )
    return [str(backbone), str(keep_set), str(tmp_path / "pruned"), str(SHARD_GIB)]


@pytest.mark.slow
def test_memory_stays_below_two_shards(arguments):
    outcome = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True
    )
    assert int(outcome.stdout) < 2 * SHARD_GIB * 2**30


@pytest.mark.slow
def test_a_killed_export_leaves_no_checkpoint_and_can_be_run_again(arguments, tmp_path):
    command = [sys.executable, "-c", PROGRAM, *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".pruned.*/*.safetensors")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "pruned").exists()
    assert list(tmp_path.glob(".pruned.*"))
    subprocess.run(command, capture_output=True, check=True)
    assert verify_folder(tmp_path / "pruned").shape.num_experts == 6
    assert json.loads((tmp_path / "pruned" / "manifest.json").read_text())["num_kept"] == 6
    assert not list(tmp_path.glob(".pruned.*"))
