"""Resume points of a calibration: the sums so far, named by the number of rows behind them."""

import re
from collections.abc import Mapping
from pathlib import Path

from slimwise.artifacts.routing_stats import read_routing_stats, write_routing_stats
from slimwise.core.routing_stats import RoutingStats
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

_FILE_NAME = re.compile(r"after_(\d+)_rows\.safetensors")


def load_progress(folder: Path) -> tuple[dict[str, RoutingStats], int] | None:
    """The latest sums by component and their number of rows; None if nothing was saved."""
    saved = _saved(folder)
    if not saved:
        return None
    num_rows, path = saved[-1]
    try:
        return read_routing_stats(path), num_rows
    except ArtifactError as failure:
        raise ArtifactError(
            f"resume point {path} is damaged. Delete it and run the same command again."
        ) from failure


def save_progress(
    folder: Path, stats: Mapping[str, RoutingStats], num_rows: int, provenance: Provenance
) -> None:
    """Save the sums; earlier resume points go once the new one is there."""
    earlier = _saved(folder)
    write_routing_stats(folder / f"after_{num_rows}_rows.safetensors", stats, provenance)
    for _, path in earlier:
        path.unlink()


def clear_progress(folder: Path) -> None:
    """Remove all resume points, so that a rerun computes anew."""
    for _, path in _saved(folder):
        path.unlink()


def _saved(folder: Path) -> list[tuple[int, Path]]:
    matches = ((_FILE_NAME.fullmatch(path.name), path) for path in folder.iterdir())
    return sorted((int(match[1]), path) for match, path in matches if match)
