from pathlib import Path

import pytest

from slimwise.artifacts.backbone_record import BackboneRecord, write_backbone_record
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.errors import ArtifactError, ConfigError
from slimwise.provenance import current_provenance
from slimwise.select.check import check_if_known, run
from slimwise.select.config import SelectionConfig


@pytest.fixture
def backbone(tmp_path):
    """The record of a model with 64 experts, top-4, named miniature."""
    shape = MoEShape(8, 64, 4, hidden_size=192, expert_width=32, shared_expert_width=64)
    rule = GateRule(GateActivation.SOFTMAX, renormalised=True)
    record = BackboneRecord("miniature", Path("m"), "t", "A", shape, rule, "bfloat16", "0")
    path = tmp_path / "backbone.json"
    write_backbone_record(path, record, current_provenance())
    return path


def test_counts_from_top_k_to_all_experts_pass(backbone):
    run(SelectionConfig(num_kept=(4, 64)), backbone=backbone)


@pytest.mark.parametrize(("num_kept", "limit"), [(3, "top_k=4"), (65, "num_experts=64")])
def test_a_count_outside_is_refused_with_value_limit_and_remedy(backbone, num_kept, limit):
    with pytest.raises(ConfigError) as refusal:
        run(SelectionConfig(num_kept=(32, num_kept)), backbone=backbone)
    for part in (f"num_kept={num_kept}", limit, "selection.num_kept to 4..64"):
        assert part in str(refusal.value)


def test_only_the_record_of_the_same_backbone_counts_before_the_first_stage(backbone, tmp_path):
    config = SelectionConfig(num_kept=(3,))
    check_if_known(config, name="another", backbone=backbone)
    check_if_known(config, name="miniature", backbone=tmp_path / "none.json")
    with pytest.raises(ConfigError):
        check_if_known(config, name="miniature", backbone=backbone)


def test_the_stage_itself_needs_the_record(tmp_path):
    with pytest.raises(ArtifactError):
        run(SelectionConfig(num_kept=(8,)), backbone=tmp_path / "none.json")
