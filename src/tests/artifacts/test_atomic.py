import errno
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from slimwise.artifacts.atomic import atomic_directory, atomic_file
from slimwise.errors import ArtifactError


def test_file_appears_only_when_the_block_succeeds(tmp_path):
    path = tmp_path / "new" / "record.json"
    with atomic_file(path) as temporary:
        temporary.write_text("{}")
        assert temporary.suffix == path.suffix
        assert not path.exists()
    assert path.read_text() == "{}"
    assert os.listdir(path.parent) == ["record.json"]


def test_failure_keeps_the_old_file_and_leaves_no_other(tmp_path):
    path = tmp_path / "record.json"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_file(path) as temporary:
        temporary.write_text(f"half {1 / 0}")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["record.json"]


def test_directory_replaces_what_lay_there(tmp_path):
    path = tmp_path / "checkpoint"
    path.mkdir()
    (path / "stale.safetensors").touch()
    with atomic_directory(path) as temporary:
        (temporary / "fresh").touch()
        assert os.listdir(path) == ["stale.safetensors"]
    assert os.listdir(path) == ["fresh"]
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_directory_survives_a_failed_block(tmp_path):
    path = tmp_path / "checkpoint"
    path.mkdir()
    (path / "old").touch()
    with pytest.raises(KeyError), atomic_directory(path):
        raise KeyError
    assert os.listdir(path) == ["old"]
    assert os.listdir(tmp_path) == ["checkpoint"]


@pytest.fixture
def synced(monkeypatch) -> list[str]:
    """Names of the files and folders that were put on the disk, and what was renamed, in turn."""
    seen: list[str] = []
    rename = Path.replace

    def fsync(descriptor: int) -> None:
        seen.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")).name)

    def replace(path: Path, target: Path) -> Path:
        seen.append(f"{path.name} -> {target.name}")
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replace)
    return seen


def test_what_appears_is_on_the_disk_by_then(tmp_path, synced):
    with atomic_file(tmp_path / "record.json") as temporary:
        temporary.touch()
    name = temporary.name
    assert synced == [name, f"{name} -> record.json", tmp_path.name]
    synced.clear()
    with atomic_directory(tmp_path / "model") as temporary:
        (temporary / "inner").mkdir()
        (temporary / "inner" / "weights").touch()
    name = temporary.name
    assert set(synced[:2]) == {"inner", "weights"}
    assert synced[2:] == [name, f"{name} -> model", tmp_path.name]


def test_a_file_that_is_soon_written_anew_waits_for_no_disk(tmp_path, synced):
    with atomic_file(tmp_path / "coverage.json", is_durable=False) as temporary:
        temporary.touch()
    assert synced == [f"{temporary.name} -> coverage.json"]
    assert (tmp_path / "coverage.json").exists()


@pytest.mark.parametrize(("number", "is_told"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_disk_that_fails_is_told_and_one_that_cannot_wait_is_not(
    tmp_path, monkeypatch, number, is_told
):
    def fsync(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)
    expected = pytest.raises(ArtifactError, match="record") if is_told else nullcontext()
    with expected, atomic_file(tmp_path / "record.json") as temporary:
        temporary.touch()
    assert (tmp_path / "record.json").exists() is not is_told


@pytest.mark.parametrize("context", [atomic_file, atomic_directory])
def test_parent_that_is_a_file_is_named(tmp_path, context):
    (tmp_path / "taken").touch()
    with pytest.raises(ArtifactError, match="taken"), context(tmp_path / "taken" / "out"):
        pass
