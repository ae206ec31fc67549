"""Refuses to prune a full model that is worse than the study requires."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pandas as pd

from slimwise.artifacts.grades import read_grades
from slimwise.artifacts.json_record import write_json_record
from slimwise.benchmarks.tool_calls.categories import item_weights
from slimwise.core.vocabulary import Decoding
from slimwise.errors import AccuracyFloorError
from slimwise.provenance import current_provenance

SCHEMA = "slimwise.accuracy_floor/1"
_log = logging.getLogger(__name__)


class FloorConfig(Protocol):
    """The part of the backbone's slice that this stage reads."""

    @property
    def accuracy_floors(self) -> Mapping[str, float]:
        """Least greedy accuracy, fraction by benchmark."""
        ...


def run(config: FloorConfig, *, grades: Path, out: Path) -> None:
    """Write accuracy_floor.json if the full decoder's greedy accuracy reaches every floor."""
    accuracies = greedy_accuracies(read_grades(grades))
    check_floors(accuracies, config.accuracy_floors)
    payload = {"accuracies": accuracies, "floors": dict(config.accuracy_floors)}
    write_json_record(out, SCHEMA, payload, current_provenance())
    reached = ", ".join(f"{name} {value:.3f}" for name, value in accuracies.items())
    _log.info("accuracy floors reached: %s", reached)


def greedy_accuracies(grades: pd.DataFrame) -> dict[str, float]:
    """Share of right greedy answers by benchmark, items weighted as the benchmark publishes it."""
    greedy = grades[grades["decoding"] == Decoding.GREEDY]
    return {str(name): _accuracy(str(name), rows) for name, rows in greedy.groupby("benchmark")}


def _accuracy(benchmark: str, rows: pd.DataFrame) -> float:
    weights = item_weights(benchmark, list(rows["item_id"]))
    return float((rows["correct"] * weights).mean())


def check_floors(accuracies: Mapping[str, float], floors: Mapping[str, float]) -> None:
    """AccuracyFloorError names every benchmark below its floor, or not measured greedily."""
    faults = []
    for benchmark, floor in floors.items():
        value = accuracies.get(benchmark)
        if value is None:
            faults.append(f"{benchmark} has no greedy answers, its floor is {floor:.3f}")
        elif value < floor:
            faults.append(f"{benchmark} is {value:.3f}, below its floor of {floor:.3f}")
    if faults:
        raise AccuracyFloorError(
            f"greedy accuracy of the full model: {'; '.join(faults)}. Nothing was pruned. Train "
            "the backbone longer, choose another one, or lower backbone.accuracy_floors."
        )
