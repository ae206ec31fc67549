"""Whether a model can keep the expert counts that a study asks for, before it is loaded."""

from pathlib import Path

from slimwise.artifacts.backbone_record import BackboneRecord, read_backbone_record
from slimwise.errors import ArtifactError, ConfigError
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
    for num_kept in config.num_kept:
        _check(num_kept, record)


def _check(num_kept: int, record: BackboneRecord) -> None:
    shape = record.shape
    if num_kept < shape.top_k:
        raise ConfigError(
            f"num_kept={num_kept} is below top_k={shape.top_k} for {record.name}: the router could "
            f"not pick {shape.top_k} experts. Set selection.num_kept to "
            f"{shape.top_k}..{shape.num_experts}."
        )
    if num_kept > shape.num_experts:
        raise ConfigError(
            f"num_kept={num_kept} is above num_experts={shape.num_experts} of {record.name}: there "
            f"are no more to keep. Set selection.num_kept to {shape.top_k}..{shape.num_experts}."
        )
