import pytest

from slimwise.artifacts.manifest import (
    CHECKPOINT_SCHEMA,
    verify_if_exported,
    verify_manifest,
    write_manifest,
)
from slimwise.errors import ArtifactError

SCHEMA = "slimwise.test/1"


@pytest.fixture
def folder(tmp_path, provenance):
    (tmp_path / "sub").mkdir()
    (tmp_path / "weights").write_bytes(b"abc")
    (tmp_path / "sub" / "config").write_bytes(b"{}")
    write_manifest(tmp_path, SCHEMA, provenance, {"num_kept": 32})
    return tmp_path


def test_payload_lists_every_file(folder):
    payload = verify_manifest(folder, SCHEMA)
    assert payload["num_kept"] == 32
    assert list(payload["files"]) == ["sub/config", "weights"]
    assert payload["files"]["weights"]["size_bytes"] == 3
    # SHA-256 of "abc", FIPS 180-2 appendix B.1.
    assert payload["files"]["weights"]["sha256"].startswith("ba7816bf8f01cfea")


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda folder: (folder / "weights").unlink(), "weights is missing"),
        (lambda folder: (folder / "weights").write_bytes(b"abd"), "weights has changed"),
        (lambda folder: (folder / "stale").touch(), "stale is not listed"),
        (lambda folder: (folder / "manifest.json").write_text("{"), "manifest"),
        (lambda folder: (folder / "manifest.json").unlink(), "manifest"),
        (
            lambda folder: (folder / "manifest.json").write_text(f'{{"schema": "{SCHEMA}"}}'),
            "lists",
        ),
    ],
)
def test_folder_that_disagrees_is_refused(folder, spoil, named):
    spoil(folder)
    with pytest.raises(ArtifactError, match=named):
        verify_manifest(folder, SCHEMA)


def test_only_a_checkpoints_folder_is_held_to_its_manifest(folder, provenance):
    (folder / "weights").write_bytes(b"abd")
    assert not verify_if_exported(folder)
    write_manifest(folder, CHECKPOINT_SCHEMA, provenance)
    assert verify_if_exported(folder)
    (folder / "weights").write_bytes(b"abc")
    with pytest.raises(ArtifactError, match="weights has changed"):
        verify_if_exported(folder)
    (folder / "manifest.json").unlink()
    assert not verify_if_exported(folder)


@pytest.mark.parametrize(
    ("content", "named"),
    [("{", "cannot read"), ('{"schema": "slimwise.pruned_checkpoint/9"}', "checkpoint/9")],
)
def test_a_checkpoints_manifest_that_cannot_be_read_is_refused(folder, content, named):
    (folder / "manifest.json").write_text(content)
    with pytest.raises(ArtifactError, match=named):
        verify_if_exported(folder)


@pytest.mark.parametrize("content", ["[]", '{"schema": 1}', '{"name": "an add-on"}'])
def test_a_manifest_of_something_else_is_let_be(folder, content):
    (folder / "manifest.json").write_text(content)
    assert not verify_if_exported(folder)


def test_rewriting_the_manifest_does_not_list_itself(folder, provenance):
    write_manifest(folder, SCHEMA, provenance)
    assert "manifest.json" not in verify_manifest(folder, SCHEMA)["files"]
