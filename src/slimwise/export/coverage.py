"""Whether a checkpoint has every expert tensor that its configuration promises.

A loader fills what is missing or has an unexpected name with random numbers.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from slimwise.artifacts.weight_files import WeightEntry
from slimwise.backbones.base import (
    Backbone,
    Config,
    ExpertLayout,
    ExpertStack,
    Shapes,
    SingleExpert,
)
from slimwise.errors import CheckpointError

_FETCH_AGAIN = "Fetch the checkpoint again, or export it again if it is a pruned one."


@dataclass
class _LayerTensors:
    stacked: dict[str, tuple[int, ...]] = field(default_factory=dict)
    single: dict[int, dict[str, tuple[int, ...]]] = field(default_factory=lambda: defaultdict(dict))


def check_expert_tensors(
    entries: Iterable[WeightEntry], backbone: Backbone, config: Config
) -> None:
    """Raise CheckpointError naming the first layer or tensor that disagrees with the config."""
    shape = backbone.shape(config)
    found = _expert_tensors(entries, backbone, shape.num_experts)
    layers = backbone.moe_layers(config)
    unknown = sorted(found.keys() - set(layers))
    if unknown:
        raise CheckpointError(
            f"layer {unknown[0]} has expert tensors, but config.json gives it no experts. "
            f"{_FETCH_AGAIN}"
        )
    parts = set(found[layers[0]].stacked)
    for layer in layers:
        tensors = found[layer]
        layout = _layout_of(tensors, backbone.layouts(shape))
        _check_parts(f"layer {layer}", tensors.stacked, layout.stacked, parts)
        _check_experts(layer, tensors.single, layout, shape.num_experts)


def _expert_tensors(
    entries: Iterable[WeightEntry], backbone: Backbone, num_experts: int
) -> defaultdict[int, _LayerTensors]:
    found: defaultdict[int, _LayerTensors] = defaultdict(_LayerTensors)
    for entry in entries:
        match backbone.tensor_role(entry.name):
            case ExpertStack(layer=layer, part=part, dim=dim):
                if len(entry.shape) <= dim or entry.shape[dim] != num_experts:
                    raise CheckpointError(
                        f"{entry.name} has shape {list(entry.shape)}; config.json promises "
                        f"{num_experts} experts along dimension {dim}. {_FETCH_AGAIN}"
                    )
                found[layer].stacked[part] = entry.shape
            case SingleExpert(layer=layer, part=part, expert=expert):
                found[layer].single[expert][part] = entry.shape
            case _:
                pass
    return found


def _layout_of(tensors: _LayerTensors, layouts: tuple[ExpertLayout, ...]) -> ExpertLayout:
    matching = [layout for layout in layouts if bool(layout.single) == bool(tensors.single)]
    assert len(matching) == 1
    return matching[0]


def _check_experts(
    layer: int,
    single: Mapping[int, Shapes],
    layout: ExpertLayout,
    num_experts: int,
) -> None:
    expected = set(range(num_experts)) if layout.single else set()
    for expert in sorted(expected ^ single.keys()):
        problem = "has no tensors" if expert in expected else "is not in config.json's count"
        raise CheckpointError(
            f"layer {layer}: expert {expert} {problem} ({num_experts} experts). {_FETCH_AGAIN}"
        )
    parts = {part for shapes in single.values() for part in shapes}
    for expert, shapes in single.items():
        _check_parts(f"layer {layer}, expert {expert}", shapes, layout.single, parts)


def _check_parts(where: str, found: Shapes, promised: Shapes, in_others: set[str]) -> None:
    """Promised tensors are there in their shape, and so is what the other layers or experts have.

    The latter catches a quantised checkpoint that lost one of its scales.
    """
    for part in sorted(promised.keys() | in_others):
        if part not in found:
            raise CheckpointError(f"{where} lacks tensor {part}. {_FETCH_AGAIN}")
    for part, shape in promised.items():
        if found[part] != shape:
            raise CheckpointError(
                f"{where}: {part} has shape {list(found[part])}; config.json promises "
                f"{list(shape)}. {_FETCH_AGAIN}"
            )
    for part in sorted(found.keys() - in_others):
        raise CheckpointError(f"{where} has tensor {part}, which others lack. {_FETCH_AGAIN}")
