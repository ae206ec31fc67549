import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from slimwise.errors import EngineError
from slimwise.gpu_lease import VISIBLE, _lock, leased_gpus, visible_gpus

_NOBODY = 65534


@pytest.fixture(autouse=True)
def three_gpus(tmp_path, monkeypatch):
    """A driver that lists three GPUs."""
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf '0, GPU-a\\n1, GPU-b\\n2, GPU-c\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv(VISIBLE, raising=False)


def test_no_gpu_is_leased_twice_and_each_is_free_again(tmp_path):
    with leased_gpus(2, tmp_path) as first:
        assert first == ("GPU-a", "GPU-b")
        with leased_gpus(1, tmp_path) as second:
            assert second == ("GPU-c",)
        with pytest.raises(EngineError, match="2 GPUs are needed and 1 of the 3"):
            leased_gpus(2, tmp_path).__enter__()
        with leased_gpus(1, tmp_path) as third:
            assert third == ("GPU-c",)
    with leased_gpus(3, tmp_path) as all_of_them:
        assert len(all_of_them) == 3


@pytest.mark.parametrize(
    ("named", "gpus"),
    [
        ("2, GPU-a", ("GPU-c", "GPU-a")),
        ("1,MIG-d", ("GPU-b", "MIG-d")),
        ("0,-1,1", ("GPU-a",)),
        ("-1", ()),
        ("", ()),
    ],
)
def test_only_visible_gpus_are_leased_by_index_or_uuid(monkeypatch, named, gpus):
    monkeypatch.setenv(VISIBLE, named)
    assert visible_gpus() == gpus


def test_the_lease_of_a_process_that_died_is_over(tmp_path):
    source = f"""
import os
from pathlib import Path
from slimwise.gpu_lease import leased_gpus
lease = leased_gpus(3, Path({str(tmp_path)!r}))
lease.__enter__()
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == 9
    with leased_gpus(3, tmp_path) as gpus:
        assert len(gpus) == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_users_of_one_host_share_its_locks():
    """On a cluster's node: the lock file that one user made lies in a public folder."""
    with tempfile.TemporaryDirectory() as name:
        public = Path(name)
        public.chmod(0o1777)
        with leased_gpus(1, public) as gpus:
            (ours,) = gpus
            os.seteuid(_NOBODY)
            try:
                assert _lock(public, ours) is None
            finally:
                os.seteuid(0)
        os.seteuid(_NOBODY)
        try:
            lock = _lock(public, ours)
        finally:
            os.seteuid(0)
        assert lock is not None
        os.close(lock)


def test_a_host_without_a_driver_is_told_so(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EngineError, match="Install the NVIDIA driver"):
        leased_gpus(1).__enter__()
