"""Bytes of checkpoints before there are any, from the shapes of their tensors."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slimwise.artifacts.weight_files import WeightEntry, read_weights
from slimwise.backbones.base import Backbone, Config
from slimwise.backbones.registry import backbone_for, inspect_checkpoint
from slimwise.core.keep_set import KeepSet
from slimwise.core.moe import MoEShape
from slimwise.errors import ConfigError
from slimwise.export.plan import plan_tensors
from slimwise.inspect.config import BackboneConfig
from slimwise.inspect.source import model_folder

_BF16_BYTES = 2


@dataclass(frozen=True)
class PlannedBackbone:
    """The tensors of a model that may not be here; published is its published shape's name."""

    entries: Mapping[str, WeightEntry]
    family: Backbone
    config: Config
    published: str

    @property
    def shape(self) -> MoEShape:
        return self.family.shape(self.config)

    @property
    def num_bytes(self) -> int:
        """Bytes of the whole model."""
        return sum(entry.num_bytes for entry in self.entries.values())

    def pruned_bytes(self, num_kept: int) -> int:
        """Bytes of an exported checkpoint."""
        shape = self.shape
        kept = (tuple(range(num_kept)),) * shape.num_layers
        keep_set = KeepSet(kept, shape.num_experts, shape.top_k)
        planned = plan_tensors(self.entries, self.family, self.config, keep_set)
        return sum(tensor.num_bytes for tensor in planned)

    @property
    def shared_expert_bytes(self) -> int:
        """Bytes that a second shared expert in every layer adds."""
        shape = self.shape
        return 3 * shape.shared_expert_width * shape.hidden_size * shape.num_layers * _BF16_BYTES

    @property
    def trained_bytes(self) -> int:
        """Bytes of what distillation leaves: shared experts of twice the width, and routers."""
        shape = self.shape
        routers = shape.num_experts * shape.hidden_size * shape.num_layers * _BF16_BYTES
        return 2 * self.shared_expert_bytes + routers


def planned_backbone(config: BackboneConfig) -> PlannedBackbone:
    """The backbone, read from a folder's headers, or by its hub id if the paper studies it.

    ConfigError if it is another hub id: nothing is fetched to make a plan.
    """
    from slimwise.backbones.published import published_shape

    published = published_shape(config.model)
    if published is not None:
        return _published(published)
    if config.model not in ("embedded", "trained") and not Path(config.model).expanduser().is_dir():
        raise ConfigError(
            f"backbone.model = {config.model!r} is no folder here, and its shape is not known "
            "beforehand. Fetch the model and set backbone.model to its folder."
        )
    name = "embedded" if config.model == "trained" else config.model
    folder = model_folder(config.model_copy(update={"model": name}), None)
    found = inspect_checkpoint(folder)
    return PlannedBackbone(read_weights(folder), found.backbone, found.config, "")


def _published(published: str) -> PlannedBackbone:
    """The shape's tensors, with the towers and in bfloat16."""
    import torch
    import transformers

    from slimwise.backbones.published import PublishedShape, published_config

    config = published_config(PublishedShape(published))
    with torch.device("meta"):
        model = transformers.AutoModelForImageTextToText.from_config(config)
    entries = {
        name: _entry(name, tuple(parameter.shape), parameter.numel() * _BF16_BYTES)
        for name, parameter in model.named_parameters()
    }
    return PlannedBackbone(entries, backbone_for(config.model_type), config.to_dict(), published)


def _entry(name: str, shape: tuple[int, ...], num_bytes: int) -> WeightEntry:
    return WeightEntry(name, "BF16", shape, Path(), 0, num_bytes)
