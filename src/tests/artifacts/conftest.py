"""Records of a made-up two-layer model, and the ways in which a file goes bad."""

import pandas as pd
import pytest

from slimwise.artifacts.backbone_record import BackboneRecord
from slimwise.artifacts.keep_set import KeepSetRecord
from slimwise.core.keep_set import KeepSet
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.core.vocabulary import Criterion
from slimwise.provenance import Provenance


@pytest.fixture
def provenance() -> Provenance:
    return Provenance("abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores", {}, "pytest")


@pytest.fixture
def backbone_record(tmp_path) -> BackboneRecord:
    shape = MoEShape(2, 4, 2, 8, 4, 4)
    rule = GateRule(GateActivation.SOFTMAX, renormalised=True)
    return BackboneRecord("two", tmp_path, "family", "Family", shape, rule, "float32", "0" * 64)


@pytest.fixture
def keep_set_record() -> KeepSetRecord:
    keep_set = KeepSet(((0, 2), (1, 2, 3)), num_experts=4, top_k=2)
    return KeepSetRecord(keep_set, Criterion.REAP, "0" * 64, "family")


@pytest.fixture
def scores() -> pd.DataFrame:
    rows = [(layer, expert, 7.0) for layer in range(2) for expert in range(4)]
    frame = pd.DataFrame(rows, columns=["layer", "expert", "tokens"])
    for weight, criterion in enumerate(Criterion, 1):
        frame[criterion.value] = weight * (frame["expert"] + frame["layer"] / 2)
    return frame
