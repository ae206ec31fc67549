import dataclasses

import pytest

from slimwise.artifacts.trained_record import (
    TrainedRecord,
    read_trained_record,
    write_trained_record,
)
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Distillation
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

RECORD = TrainedRecord(
    decoder="reap-m32-kd_uniform",
    rule=Distillation.UNIFORM,
    seed=3,
    backbone_digest="a" * 64,
    keep_set_digest="b" * 64,
    recipe={"steps": 440, "alpha": 0.1},
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "trained.safetensors").write_bytes(b"weights")
    write_trained_record(tmp_path, RECORD, Provenance("", "", "", {}, ""))
    return tmp_path


def test_a_record_survives_the_disk(folder):
    assert read_trained_record(folder) == RECORD


def test_differences_name_fields_and_keys_of_the_recipe():
    other = dataclasses.replace(RECORD, seed=4, recipe={"steps": 400, "alpha": 0.1, "beta": 1})
    assert RECORD.differences(other) == ("recipe.beta", "recipe.steps", "seed")
    assert RECORD.differences(RECORD) == ()


def test_cut_tensors_and_a_missing_field_are_named(folder):
    (folder / "trained.safetensors").write_bytes(b"weig")
    with pytest.raises(ArtifactError, match=r"trained\.safetensors has changed"):
        read_trained_record(folder)
    (folder / "trained.safetensors").write_bytes(b"weights")
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace("keep_set_digest", "keep_set"))
    with pytest.raises(ArtifactError, match=r"keep_set_digest.*[Rr]equired"):
        read_trained_record(folder)


def test_a_keep_sets_digest_is_of_its_content():
    kept = KeepSet(((0, 1), (1, 2)), 4, 2)
    assert kept.digest == KeepSet(((0, 1), (1, 2)), 4, 2).digest
    assert kept.digest != KeepSet(((0, 1), (1, 3)), 4, 2).digest
    assert kept.digest != KeepSet(((0, 1), (1, 2)), 4, 1).digest
