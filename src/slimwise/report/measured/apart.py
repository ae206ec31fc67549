"""Prefill and decode on a GPU each, asked through the router: what a decoder gives its users."""

from collections.abc import Iterable

import pandas as pd

from slimwise.artifacts.json_rows import Row, latest
from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.report.measured.throughput import PER_GPU, PER_USER, at_target

DISAGGREGATED_COLUMNS = (
    "backbone",
    "num_kept",
    "routing",
    "kernels",
    "concurrency",
    "batch_running",
    "input_tokens",
    "output_tokens",
    "ttft_ms_median",
    "tpot_ms_median",
    PER_USER,
    PER_GPU,
    "target_tokens_per_s_per_user",
    "ratio_at_target",
    "kv_mib_per_request",
    "kv_ms_per_request",
    "requests",
    "prompt_tokens_computed_by_decode",
    "vllm",
    "also_running",
)


def disaggregated_table(rows: Iterable[Row], *, backbone: str, target: float) -> pd.DataFrame:
    """One row per decoder and concurrency, the full one first.

    ratio_at_target repeats in all rows of a decoder: its throughput over the full one's where a
    user gets the target. It is missing where the measured points do not enclose the target.
    """
    asked = [row for row in rows if row["kind"] == "bench"]
    found = latest(asked, ["num_kept", "concurrency"]).sort_values(
        ["num_kept", "concurrency"], ascending=[False, True], kind="stable"
    )
    rates = {
        num_kept: None if point is None else point.tokens_per_s_per_gpu
        for num_kept, curve in found.groupby("num_kept")
        for point in [at_target(curve, target)]
    }
    full_rate = rates.get(found["prefill_num_kept"].iloc[0])
    ratios = found["num_kept"].map(rates) / (float("nan") if full_rate is None else full_rate)
    table = found.assign(
        backbone=backbone, target_tokens_per_s_per_user=target, ratio_at_target=ratios
    )
    return table[[*DISAGGREGATED_COLUMNS, *PROVENANCE_COLUMNS]].reset_index(drop=True)
