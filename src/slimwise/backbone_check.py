"""Whether a model can be pruned and distilled as a study asks, before it is loaded."""

from pathlib import Path

from slimwise.artifacts.backbone_record import BackboneRecord, read_backbone_record
from slimwise.backbones.registry import read_model_config
from slimwise.config import StudyConfig
from slimwise.core.selection import check_num_kept
from slimwise.distill.check import check_distillable
from slimwise.errors import ArtifactError


def run(study: StudyConfig, *, backbone: Path) -> None:
    """Return if the backbone can be pruned and distilled as asked.

    ConfigError names the first expert count that it cannot keep, BackboneError why it cannot be
    distilled.
    """
    _check_all(study, read_backbone_record(backbone))


def check_if_known(study: StudyConfig, backbone: Path) -> None:
    """The same check where an earlier run has recorded the study's backbone already."""
    try:
        record = read_backbone_record(backbone)
    except ArtifactError:
        return  # The stage that writes the record anew checks then.
    if record.name == study.backbone.name:
        _check_all(study, record)


def _check_all(study: StudyConfig, record: BackboneRecord) -> None:
    shape = record.shape
    for num_kept in study.selection.num_kept:
        check_num_kept(
            num_kept, num_experts=shape.num_experts, top_k=shape.top_k, backbone=record.name
        )
    # A model that is gone may have left all that the study needs.
    if study.distilled_decoders() and record.model.is_dir():
        check_distillable(record.name, read_model_config(record.model))
