"""The plan of a study: a table of its stages, and whether the disk can take it."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from slimwise.config import StudyConfig, load_study
from slimwise.errors import ConfigError
from slimwise.study_plan.checkpoint_sizes import planned_backbone
from slimwise.study_plan.estimates import Estimate, estimates

_GIB = 2**30
_HEADER = ("stage", "times", "GPU hours", "at most", "disk GiB", "based on", "assuming")


def study_plan(overlays: Sequence[Path], results: Path = Path("results")) -> str:
    """A Markdown table of what the merged study takes on one H200, and of the disk's room.

    ConfigError if an overlay cannot be read, or the study is refused.
    """
    study = merged_study(overlays)
    rows = estimates(study, planned_backbone(study.backbone))
    needed = sum(row.num_bytes for row in rows)
    total = Estimate(
        "total",
        sum(row.count for row in rows),
        _sum(row.gpu_hours for row in rows),
        _sum(row.most_gpu_hours for row in rows),
        needed,
    )
    lines = [
        f"{study.study}: {study.backbone.name}, one NVIDIA H200 a job",
        "",
        *_table([_HEADER, *(_cells(row) for row in [*rows, total])]),
        "",
        "At most: every answer hits its budget, every training sequence its limit.",
        _disk(needed, results),
    ]
    return "\n".join(lines)


def merged_study(overlays: Sequence[Path]) -> StudyConfig:
    """The study of the overlays, later ones over earlier ones, as the workflow engine merges."""
    merged: dict[str, Any] = {}
    for path in overlays:
        try:
            raw = yaml.safe_load(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as failure:
            raise ConfigError(f"cannot read {path}: {failure}.") from failure
        if not isinstance(raw, dict):
            raise ConfigError(f"{path} holds no keys. Name an overlay such as config/mini.yaml.")
        merged = _merge(merged, raw)
    return load_study(merged)


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    both = {
        key: _merge(base[key], value)
        for key, value in over.items()
        if isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
    }
    return {**base, **over, **both}


def _disk(needed: int, results: Path) -> str:
    folder = next(parent for parent in (results, *results.absolute().parents) if parent.is_dir())
    free = shutil.disk_usage(folder).free
    sizes = f"{needed / _GIB:.0f} GiB with the backbone's own, {free / _GIB:.0f} GiB free"
    if needed <= free:
        return f"Disk at {folder}: {sizes}."
    return (
        f"WARNING: disk at {folder} is too small: {sizes}. Keep results/ on a larger one, or ask "
        "for fewer of selection.num_kept and selection.criteria."
    )


def _cells(row: Estimate) -> tuple[str, ...]:
    return (
        row.stage,
        str(row.count),
        _hours(row.gpu_hours),
        _hours(row.most_gpu_hours),
        f"{row.num_bytes / _GIB:.1f}" if row.num_bytes else "",
        row.basis,
        row.assumption,
    )


def _hours(hours: float | None) -> str:
    if hours is None:
        return "?"
    return f"{hours:.1f}" if hours else ""


def _sum(hours: Iterable[float | None]) -> float | None:
    """None if one is not known."""
    total = 0.0
    for each in hours:
        if each is None:
            return None
        total += each
    return total


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [lines[0], rule, *lines[1:]]
