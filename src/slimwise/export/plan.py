"""What a pruned checkpoint will hold, known from the source's headers alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from slimwise.artifacts.weight_files import WeightEntry
from slimwise.backbones.base import Backbone, Config, Copied, Dropped, ExpertStack, SingleExpert
from slimwise.core.keep_set import KeepSet
from slimwise.core.slicing import kept_byte_ranges


@dataclass(frozen=True)
class PlannedTensor:
    """A tensor to write: its name and shape, and the byte ranges of its source that it takes."""

    name: str
    shape: tuple[int, ...]
    source: WeightEntry
    ranges: tuple[tuple[int, int], ...]

    @property
    def num_bytes(self) -> int:
        """Bytes that the tensor will have."""
        return sum(end - begin for begin, end in self.ranges)


def plan_tensors(
    entries: Mapping[str, WeightEntry], backbone: Backbone, config: Config, keep_set: KeepSet
) -> list[PlannedTensor]:
    """The tensors of the checkpoint without dropped experts; a full keep set copies everything.

    The entries must have passed check_expert_tensors.
    """
    if keep_set.num_kept_per_layer[0] == keep_set.num_experts:
        return [_whole(name, entry) for name, entry in entries.items()]
    kept_in = dict(zip(backbone.moe_layers(config), keep_set.kept, strict=True))
    planned = (_plan(entry, backbone, kept_in) for entry in entries.values())
    return [tensor for tensor in planned if tensor is not None]


def plan_shards(
    tensors: Iterable[PlannedTensor], max_shard_bytes: int
) -> list[list[PlannedTensor]]:
    """Tensors by shard in source order, each at most that large or of one tensor.

    Within a shard wider types come first: a safetensors file aligns its tensors that way.
    """
    shards: list[list[PlannedTensor]] = []
    free_bytes = 0
    for tensor in tensors:
        if not shards or tensor.num_bytes > free_bytes:
            shards.append([])
            free_bytes = max_shard_bytes
        shards[-1].append(tensor)
        free_bytes -= tensor.num_bytes
    return [sorted(shard, key=lambda t: (-t.source.item_bytes, t.name)) for shard in shards]


def _whole(name: str, entry: WeightEntry) -> PlannedTensor:
    return PlannedTensor(name, entry.shape, entry, ((0, entry.num_bytes),))


def _plan(
    entry: WeightEntry, backbone: Backbone, kept_in: Mapping[int, Sequence[int]]
) -> PlannedTensor | None:
    role = backbone.tensor_role(entry.name)
    match role:
        case Copied():
            return _whole(entry.name, entry)
        case Dropped():
            return None
        case ExpertStack(layer=layer, dim=dim):
            kept = kept_in[layer]
            shape = (*entry.shape[:dim], len(kept), *entry.shape[dim + 1 :])
            ranges = tuple(kept_byte_ranges(entry.shape, entry.num_bytes, kept, dim))
            return PlannedTensor(entry.name, shape, entry, ranges)
        case SingleExpert(layer=layer, expert=expert):
            kept = kept_in[layer]
            if expert not in kept:
                return None
            return _whole(role.renumbered(kept.index(expert)), entry)
