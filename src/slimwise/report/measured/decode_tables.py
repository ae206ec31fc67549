"""Overhead of the plugin, experts read by a step, prefill speed and capacity, from decode rows."""

from collections.abc import Sequence

import pandas as pd

from slimwise.artifacts.coverage_table import COVERAGE_COLUMNS
from slimwise.artifacts.json_rows import Row
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.core.vocabulary import Phase, ServingMode
from slimwise.report.measured.columns import (
    CAPACITY_COLUMNS,
    MASK_OVERHEAD_COLUMNS,
    MASKED_AND_EXPORTED_COLUMNS,
    PREFILL_COLUMNS,
)
from slimwise.report.measured.decode_rows import COUNTED, UNHOOKED, Weights, rows_of

_STEP = ["engine", "kernels", "routing", "batch"]
_PROVENANCE = list(PROVENANCE_COLUMNS)


def mask_overhead_table(rows: Sequence[Row], *, backbone: str) -> pd.DataFrame:
    """What the plugin costs a decode step that reads all experts, pools loaded, per batch.

    Full is the step without the plugin, slimwise the same step with it; the overhead is the median
    of differences between neighbouring blocks of the same run, its share one of the full step.
    """
    decode = rows_of(rows, "decode")
    full = str(ServingMode.FULL)
    off, on, counted = (
        decode[decode["arm"] == arm].set_index(_STEP) for arm in (UNHOOKED, full, full + COUNTED)
    )
    paired = on[["step_ms", "overhead_ms", "overhead_error_ms", *_PROVENANCE]].rename(
        columns={"step_ms": "step_ms_slimwise"}
    )
    joined = paired.join(off["step_ms"].rename("step_ms_full"), how="inner")
    also = counted[["overhead_ms", "overhead_error_ms"]].add_prefix("coverage_")
    found = joined.join(also).reset_index()
    found = found.assign(
        backbone=backbone, overhead_share=found["overhead_ms"] / found["step_ms_full"]
    )
    return _ordered(found, ["routing", "batch"], MASK_OVERHEAD_COLUMNS)


def masked_and_exported_table(rows: Sequence[Row], *, backbone: str) -> pd.DataFrame:
    """The masked full model's decode step beside that of a checkpoint of the same experts."""
    decode = rows_of(rows, "decode")
    key = ["num_kept", "routing", "batch"]
    is_counted = decode["arm"].str.endswith(COUNTED)
    masked = decode[(decode["weights"] == Weights.MASKED) & ~is_counted]
    exported = decode[decode["weights"] == Weights.EXPORTED]
    shown = [*key, "step_ms", "step_error_ms", "kernels"]
    found = masked[[*shown, *_PROVENANCE]].merge(
        exported[shown], on=key, suffixes=("_masked", "_exported")
    )
    difference = found["step_ms_masked"] - found["step_ms_exported"]
    found = found.assign(backbone=backbone, masked_minus_exported_ms=difference)
    return _ordered(found, key, MASKED_AND_EXPORTED_COLUMNS)


def coverage_table(rows: Sequence[Row], *, backbone: str) -> pd.DataFrame:
    """Share of the pool that a step reads, mean over layers, per pool, phase, routing and batch.

    batch is sequences in decode and tokens in prefill; uniform is m (1 - (1 - k/m)^B) / m.
    """
    coverage = rows_of(rows, "coverage").assign(backbone=backbone)
    once = coverage.drop_duplicates(["phase", "routing", "num_kept", "batch"])
    order = ["phase", "routing", "num_kept", "batch"]
    return _ordered(once, order, COVERAGE_COLUMNS)


def prefill_table(rows: Sequence[Row], *, backbone: str) -> pd.DataFrame:
    """Prompt tokens a second by experts that prefill may use. SlimWise, figure 2."""
    prefill = rows_of(rows, "prefill").assign(backbone=backbone)
    shown = prefill[prefill["arm"] != ServingMode.FULL]
    return _ordered(shown, ["num_kept"], PREFILL_COLUMNS)


def capacity_table(rows: Sequence[Row], *, backbone: str) -> pd.DataFrame:
    """Requests whose KV and recurrent state fit beside each set of weights at once."""
    engines = rows_of(rows, "engine").drop_duplicates("num_kept")
    full = engines.loc[engines["weights"] == Weights.FULL, "capacity_requests"].iloc[0]
    found = engines.rename(
        columns={"capacity_tokens": "request_tokens", "num_gpu_blocks": "kv_blocks"}
    ).assign(backbone=backbone, ratio_to_full=engines["capacity_requests"] / full)
    return _ordered(found, ["num_kept"], CAPACITY_COLUMNS)


def _ordered(rows: pd.DataFrame, by: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """The table's columns, decode and uniform routing first, num_kept descending."""
    ranks = {Phase.DECODE: 0, Phase.PREFILL: 1, "uniform": 0, "skewed": 1}
    keyed = pd.DataFrame({name: _ranked(rows[name], ranks) for name in by}, index=rows.index)
    order = keyed.sort_values(list(by), kind="stable").index
    return rows.loc[order, [*columns, *_PROVENANCE]].reset_index(drop=True)


def _ranked(column: pd.Series, ranks: dict[str, int]) -> pd.Series:
    if column.name == "num_kept":
        return -column
    return column.map(ranks) if column.name in ("phase", "routing") else column
