import pandas as pd
import pytest

from slimwise.artifacts.backbone_record import BackboneRecord, write_backbone_record
from slimwise.artifacts.expert_scores import COLUMNS, write_expert_scores
from slimwise.artifacts.keep_set import read_keep_set
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.core.vocabulary import Criterion
from slimwise.errors import ArtifactError, ConfigError
from slimwise.provenance import current_provenance
from slimwise.select.config import SelectionConfig
from slimwise.select.run import run

CONFIG = SelectionConfig(criteria=(Criterion.REAP, Criterion.EAN), num_kept=(1, 2, 3, 5))


@pytest.fixture
def paths(tmp_path):
    """Two layers of four experts, of which REAP and EAN prefer opposite halves."""
    reap = [0.0, 1.0, 3.0, 2.0, 5.0, 5.0, 5.0, 5.0]
    rows = [(i // 4, i % 4, 1.0, 0.0, -score + 5, score, 0.0) for i, score in enumerate(reap)]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    write_expert_scores(tmp_path / "scores", frame, current_provenance())
    _write_backbone(tmp_path / "backbone", num_experts=4)
    return {"backbone": tmp_path / "backbone", "scores": tmp_path / "scores"}


def _write_backbone(path, num_experts):
    shape = MoEShape(2, num_experts, 2, 8, 4, 0)
    rule = GateRule(GateActivation.SOFTMAX, renormalised=True)
    record = BackboneRecord("tiny", path, "family", "Family", shape, rule, "float32", "d" * 64)
    write_backbone_record(path, record, current_provenance())


def test_keep_set_of_the_best(tmp_path, paths):
    run(CONFIG, **paths, criterion=Criterion.REAP, num_kept=2, out=tmp_path / "reap")
    chosen = read_keep_set(tmp_path / "reap")
    # Ties of the second layer keep the lower ids.
    assert chosen.keep_set.kept == ((2, 3), (0, 1))
    assert (chosen.backbone_digest, chosen.model_type) == ("d" * 64, "family")
    run(CONFIG, **paths, criterion=Criterion.EAN, num_kept=3, out=tmp_path / "ean")
    assert read_keep_set(tmp_path / "ean").keep_set.kept == ((0, 1, 3), (0, 1, 2))


@pytest.mark.parametrize(("num_kept", "limit"), [(1, "top_k=2"), (5, "num_experts=4")])
def test_impossible_counts_are_refused(tmp_path, paths, num_kept, limit):
    with pytest.raises(ConfigError, match=rf"num_kept={num_kept}.*{limit}.*2\.\.4"):
        run(CONFIG, **paths, criterion=Criterion.REAP, num_kept=num_kept, out=tmp_path / "out")


def test_decoders_outside_the_slice_are_refused(tmp_path, paths):
    with pytest.raises(ConfigError, match="mass-m2 is not in the study"):
        run(CONFIG, **paths, criterion=Criterion.MASS, num_kept=2, out=tmp_path / "out")


def test_scores_of_another_shape_are_refused(tmp_path, paths):
    _write_backbone(tmp_path / "backbone", num_experts=8)
    with pytest.raises(ArtifactError, match=r"2 layers x 4 experts; tiny has 2 x 8"):
        run(CONFIG, **paths, criterion=Criterion.REAP, num_kept=2, out=tmp_path / "out")
