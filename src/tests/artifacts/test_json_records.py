import json

import pytest

from slimwise.artifacts.backbone_record import read_backbone_record, write_backbone_record
from slimwise.artifacts.json_record import read_json_record, write_json_record
from slimwise.artifacts.keep_set import read_keep_set, write_keep_set
from slimwise.errors import ArtifactError, KeepSetError


def test_backbone_record_round_trip(tmp_path, backbone_record, provenance):
    path = tmp_path / "backbone.json"
    write_backbone_record(path, backbone_record, provenance)
    assert read_backbone_record(path) == backbone_record


def test_keep_set_round_trip(tmp_path, keep_set_record, provenance):
    path = tmp_path / "keep.json"
    write_keep_set(path, keep_set_record, provenance)
    assert read_keep_set(path) == keep_set_record


def test_payload_travels_without_schema_and_provenance(tmp_path, provenance):
    path = tmp_path / "record.json"
    write_json_record(path, "slimwise.test/1", {"answer": 42}, provenance)
    assert read_json_record(path, "slimwise.test/1") == {"answer": 42}
    assert json.loads(path.read_text())["provenance"]["commit"] == "abc1234"


def test_other_schema_is_named(tmp_path, provenance):
    path = tmp_path / "record.json"
    write_json_record(path, "slimwise.test/1", {}, provenance)
    with pytest.raises(ArtifactError, match=r"'slimwise\.test/1', expected 'slimwise\.keep_set/1'"):
        read_keep_set(path)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[1]", b"\xff\xfe\x00", b'{"schema": 3}', b"[" * 10**5]
)
def test_bad_bytes_are_refused(tmp_path, content):
    path = tmp_path / "record.json"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"record\.json"):
        read_keep_set(path)


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match=r"absent\.json: it is not there\. Correct the path"):
        read_backbone_record(tmp_path / "absent.json")


def _edit(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda d: d.pop("criterion"), "criterion"),
        (lambda d: d.update(criterion="best"), "criterion"),
        (lambda d: d["keep_set"].update(kept="0, 1"), r"keep_set\.kept"),
        (lambda d: d["keep_set"].update(kept=[[0, 1.5], [1, 2]]), r"keep_set\.kept\.0\.1"),
        (lambda d: d["keep_set"].update(num_experts=None), r"keep_set\.num_experts"),
    ],
)
def test_malformed_keep_set_names_the_field(tmp_path, keep_set_record, provenance, change, named):
    path = tmp_path / "keep.json"
    write_keep_set(path, keep_set_record, provenance)
    _edit(path, change)
    with pytest.raises(ArtifactError, match=named):
        read_keep_set(path)


@pytest.mark.parametrize(
    ("kept", "named"),
    [
        ([[0, 1], [1, 4]], "layer 1: expert 4"),
        ([[0, 0], [1, 2]], "layer 0: expert 0 is listed twice"),
        ([[0, 1], [2]], "layer 1: 1 kept"),
        ([], "no layers"),
    ],
)
def test_impossible_keep_set_names_layer_and_expert(
    tmp_path, keep_set_record, provenance, kept, named
):
    path = tmp_path / "keep.json"
    write_keep_set(path, keep_set_record, provenance)
    _edit(path, lambda document: document["keep_set"].update(kept=kept))
    with pytest.raises(KeepSetError, match=named):
        read_keep_set(path)
