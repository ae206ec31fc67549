import dataclasses

import pytest
import torch

from slimwise.artifacts.keep_set import KeepSetRecord
from slimwise.artifacts.trained_record import TrainedRecord, write_trained_record
from slimwise.artifacts.trained_tensors import write_trained_tensors
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion, Distillation
from slimwise.errors import CheckpointError
from slimwise.export.trained import with_trained
from slimwise.provenance import Provenance

CHOSEN = KeepSetRecord(KeepSet(((0, 1),), 4, 2), Criterion.REAP, "a" * 64, "t")
RECORD = TrainedRecord(
    decoder="reap-m2-kd_zero",
    rule=Distillation.ZERO,
    seed=0,
    backbone_digest=CHOSEN.backbone_digest,
    keep_set_digest=CHOSEN.keep_set.digest,
    recipe={},
)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"backbone_digest": "b" * 64}, "a backbone of digest bbbbbbbbbbbb, not aaaaaaaaaaaa"),
        ({"keep_set_digest": "c" * 64}, "a keep set of digest cccccccccccc, not "),
        ({}, "holds norm.weight, which the backbone does not have"),
    ],
)
def test_tensors_of_another_model_are_refused(tmp_path, changes, reason):
    write_trained_tensors(tmp_path, {"norm.weight": torch.ones(2)})
    record = dataclasses.replace(RECORD, **changes)
    write_trained_record(tmp_path, record, Provenance("", "", "", {}, ""))
    with pytest.raises(CheckpointError, match=reason):
        with_trained({}, tmp_path / "manifest.json", CHOSEN)
