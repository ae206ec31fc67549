"""The supported families, and which of them a checkpoint folder holds. Torch-free."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from slimwise.artifacts.strict_json import parse_json
from slimwise.backbones.attention_moe import MIXTRAL, OLMOE, QWEN2_MOE, QWEN3_MOE
from slimwise.backbones.base import Backbone
from slimwise.backbones.gemma4_moe import Gemma4MoeBackbone
from slimwise.backbones.qwen3_5_moe import Qwen35MoeBackbone
from slimwise.core.moe import GateRule, MoEShape
from slimwise.errors import BackboneError

_FAMILIES: tuple[Backbone, ...] = (
    Qwen35MoeBackbone(),
    Gemma4MoeBackbone(),
    QWEN2_MOE,
    QWEN3_MOE,
    MIXTRAL,
    OLMOE,
)
_BY_MODEL_TYPE: Mapping[str, Backbone] = MappingProxyType(
    {model_type: family for family in _FAMILIES for model_type in family.model_types}
)


class InspectedCheckpoint(NamedTuple):
    """What a checkpoint's config.json says."""

    config: dict[str, Any]
    backbone: Backbone
    shape: MoEShape
    gate_rule: GateRule


def backbone_for(model_type: str) -> Backbone:
    """The family of that model_type; BackboneError listing the supported ones if there is none."""
    backbone = _BY_MODEL_TYPE.get(model_type)
    if backbone is None:
        supported = ", ".join(sorted(_BY_MODEL_TYPE))
        raise BackboneError(
            f"model_type {model_type!r} is not supported. Use a model of type {supported}."
        )
    return backbone


def inspect_checkpoint(folder: Path) -> InspectedCheckpoint:
    """What the folder holds; its name does not matter, and no weight is read.

    BackboneError names a folder, file or configuration key that is missing or not supported.
    """
    if not folder.is_dir():
        raise BackboneError(
            f"model folder {folder} does not exist. Name a folder that holds config.json and "
            ".safetensors files."
        )
    config = read_model_config(folder)
    if not any(folder.glob("*.safetensors")):
        raise BackboneError(
            f"model folder {folder} holds no .safetensors file. Convert the weights to safetensors."
        )
    try:
        backbone = backbone_for(str(config.get("model_type")))
        shape, gate_rule = backbone.shape(config), backbone.gate_rule(config)
    except BackboneError as failure:
        raise BackboneError(f"{folder}: {failure}") from failure
    return InspectedCheckpoint(config, backbone, shape, gate_rule)


def read_model_config(folder: Path) -> dict[str, Any]:
    """What the folder's config.json says; BackboneError if it is missing or no JSON object."""
    path = folder / "config.json"
    try:
        config = parse_json(path.read_bytes(), constants=True)
    except (OSError, ValueError) as failure:
        raise BackboneError(
            f"cannot read {path}: {failure}. Name a folder that holds config.json and "
            ".safetensors files."
        ) from failure
    if not isinstance(config, dict):
        raise BackboneError(f"{path} is not a JSON object. Fetch the checkpoint again.")
    return config
