"""Whether a model can keep the expert counts that a study asks for, before it is loaded."""

from pathlib import Path

from slimwise.artifacts.backbone_record import BackboneRecord, read_backbone_record
from slimwise.core.selection import check_num_kept
from slimwise.errors import ArtifactError
from slimwise.select.config import SelectionConfig


def run(config: SelectionConfig, *, backbone: Path) -> None:
    """Return if the backbone can keep every asked count; ConfigError naming the first it cannot."""
    _check_all(config, read_backbone_record(backbone))


def check_if_known(config: SelectionConfig, *, name: str, backbone: Path) -> None:
    """The same check where an earlier run has recorded the backbone of that name already."""
    try:
        record = read_backbone_record(backbone)
    except ArtifactError:
        return  # The stage that writes the record anew checks then.
    if record.name == name:
        _check_all(config, record)


def _check_all(config: SelectionConfig, record: BackboneRecord) -> None:
    shape = record.shape
    for num_kept in config.num_kept:
        check_num_kept(
            num_kept, num_experts=shape.num_experts, top_k=shape.top_k, backbone=record.name
        )
