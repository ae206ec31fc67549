"""What tuning the MoE kernel found, beside the settings that vLLM takes by itself."""

from collections.abc import Iterable, Mapping

import pandas as pd

from slimwise.artifacts.json_rows import Row, latest
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.core.vocabulary import MoeKernels
from slimwise.report.measured.columns import KERNEL_TUNING_COLUMNS

_SETTING = "{BLOCK_SIZE_M} x {BLOCK_SIZE_N} x {BLOCK_SIZE_K}, {num_warps}, {num_stages}"


def kernel_tuning_table(rows: Iterable[Row], *, backbone: str) -> pd.DataFrame:
    """One row per shape and batch: microseconds of a layer's routed experts by its settings."""
    found = latest(map(_flat, rows), ["num_experts", "batch", "hardware"])
    times = {kernels: found[f"layer_us_{kernels}"] for kernels in MoeKernels}
    by_vllm = times[MoeKernels.SHIPPED].fillna(times[MoeKernels.DEFAULT])
    table = found.assign(
        backbone=backbone, vllm_to_tuned=by_vllm / times[MoeKernels.TUNED]
    ).sort_values(["num_experts", "batch"], ascending=[False, True], kind="stable")
    return table[[*KERNEL_TUNING_COLUMNS, *PROVENANCE_COLUMNS]].reset_index(drop=True)


def _flat(row: Row) -> Mapping[str, object]:
    times = {f"layer_us_{kernels}": row["layer_us"].get(kernels) for kernels in MoeKernels}
    setting = _SETTING.format(**row["config"])
    return {**row, **times, "num_experts": row["shape"]["num_experts"], "setting": setting}
