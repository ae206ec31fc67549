import os

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


@pytest.mark.parametrize("context", [atomic_file, atomic_directory])
def test_parent_that_is_a_file_is_named(tmp_path, context):
    (tmp_path / "taken").touch()
    with pytest.raises(ArtifactError, match="taken"), context(tmp_path / "taken" / "out"):
        pass
