"""Tables of made-up decode steps, small enough to work out by hand."""

import pandas as pd
import pytest

from slimwise.errors import ArtifactError
from slimwise.paths import PAPER_THROUGHPUT
from slimwise.report.measured.decode_tables import (
    capacity_table,
    coverage_table,
    mask_overhead_table,
    masked_and_exported_table,
    prefill_table,
)
from slimwise.report.measured.throughput import (
    at_target,
    ratio_markdown,
    ratio_table,
    throughput_table,
)

BACKBONE = "Qwen3.6-35B-A3B"
ORIGIN = {"commit": "abc1234", "date": "2026-11-30", "hardware": "one GPU"}


def engine(name: str, num_experts: int, capacity: float) -> dict:
    return {
        "kind": "engine",
        "engine": name,
        "num_experts": num_experts,
        "top_k": 8,
        "num_gpu_blocks": 10,
        "block_tokens": 16,
        "capacity_tokens": 9216,
        "capacity_requests": capacity,
        "vllm": "0.26.0",
        **ORIGIN,
    }


def decode(name: str, arm: str, num_kept: int, batch: int, step_ms: float, **more) -> dict:
    return {
        "kind": "decode",
        "engine": name,
        "num_experts": 128 if name == "m128" else 256,
        "arm": arm,
        "kernels": "shipped" if name == "m128" else "default",
        "routing": "uniform",
        "batch": batch,
        "batch_running": batch,
        "num_kept": num_kept,
        "context_tokens": 1280,
        "step_ms": step_ms,
        "step_error_ms": 0.01,
        "tokens_per_s_per_user": 1e3 / step_ms,
        "tokens_per_s_per_gpu": batch * 1e3 / step_ms,
        **more,
        **ORIGIN,
    }


def overhead(ms: float) -> dict:
    return {"overhead_ms": ms, "overhead_error_ms": 0.01}


def coverage(arm: str, num_kept: int, share: float) -> dict:
    return {
        "kind": "coverage",
        "engine": "pools",
        "num_experts": 256,
        "arm": arm,
        "routing": "uniform",
        "phase": "decode",
        "batch": 10,
        "num_kept": num_kept,
        "num_steps": 24,
        "distinct_experts": share * num_kept,
        "pool_share_measured": share,
        "pool_share_uniform": 0.27,
        **ORIGIN,
    }


def prefill(name: str, arm: str, num_kept: int, rate: float) -> dict:
    return {
        "kind": "prefill",
        "engine": name,
        "num_experts": 128 if name == "m128" else 256,
        "arm": arm,
        "kernels": "shipped" if name == "m128" else "default",
        "num_kept": num_kept,
        "requests": 32,
        "prompt_tokens": 1280,
        "prefill_tokens_per_s": rate,
        "spread_tokens_per_s": 1.0,
        **ORIGIN,
    }


@pytest.fixture
def rows() -> list[dict]:
    """Steps of 10 and 30 sequences: full in 10 and 30 ms, half of the experts in 10 and 20 ms."""
    steps = {10: (10.0, 10.0, 8.0), 30: (30.0, 20.0, 20.0)}
    found = [engine("pools", 256, 200.0), engine("m128", 128, 300.0), engine("alone", 256, 199.0)]
    for batch, (full, masked, exported) in steps.items():
        found += [
            decode("pools", "unhooked", 256, batch, full),
            decode("pools", "full", 256, batch, full + 0.2, **overhead(0.1)),
            decode("pools", "slimwise-m128", 128, batch, masked, **overhead(masked - full)),
            decode("pools", "full+coverage", 256, batch, full + 0.4, **overhead(0.3)),
            decode("pools", "slimwise-m128+coverage", 128, batch, masked + 9, **overhead(9.0)),
            decode("m128", "unhooked", 128, batch, exported),
            decode("alone", "unhooked", 256, batch, 2 * full),
        ]
    return [
        *found,
        coverage("full+coverage", 256, 0.25),
        coverage("slimwise-m128+coverage", 128, 0.5),
        prefill("pools", "unhooked", 256, 100.0),
        prefill("pools", "full", 256, 99.0),
        prefill("pools", "pruned-m128", 128, 101.0),
        prefill("m128", "unhooked", 128, 102.0),
    ]


def test_throughput_has_each_decoder_once_with_its_deployment(rows):
    table = throughput_table(rows, backbone=BACKBONE)
    at_ten = table[table["batch_offered"] == 10]
    shown = at_ten[["weights", "deployment", "mode", "num_kept", "kernels", "engine"]]
    assert shown.to_numpy().tolist() == [
        ["full", "colocated", "full", 256, "default", "pools"],
        ["full", "colocated", "full", 256, "default", "alone"],
        ["full, masked", "colocated", "slimwise", 128, "default", "pools"],
        ["exported", "disaggregated", "slimwise", 128, "shipped", "m128"],
    ]


def test_a_step_measured_again_replaces_the_first(rows):
    again = [*rows, decode("m128", "unhooked", 128, 10, 5.0)]
    table = throughput_table(again, backbone=BACKBONE)
    steps = table.loc[table["engine"] == "m128", "step_ms"]
    assert sorted(steps) == [5.0, 20.0]


def test_interpolation_is_linear_between_the_two_nearest_points():
    curve = pd.DataFrame(
        {
            "batch_running": [1, 10, 40, 100],
            "tokens_per_s_per_user": [90.0, 60.0, 40.0, 10.0],
            "tokens_per_s_per_gpu": [90.0, 600.0, 1600.0, 1000.0],
        }
    )
    found = at_target(curve, 50.0)
    assert found is not None
    # Halfway between (60, 600) and (40, 1600).
    assert found.tokens_per_s_per_gpu == pytest.approx(1100.0)
    assert (found.faster["batch_running"], found.slower["batch_running"]) == (10, 40)
    on_a_point = at_target(curve, 40.0)
    assert on_a_point is not None
    assert on_a_point.tokens_per_s_per_gpu == pytest.approx(1600.0)
    assert at_target(curve, 9.0) is None
    assert at_target(curve, 91.0) is None


def test_interpolating_rates_lets_batch_grow_linearly_with_the_step():
    # Steps of 10 and 30 ms hold 10 and 50 sequences, so that one of 20 ms holds 30.
    curve = pd.DataFrame(
        {
            "batch_running": [10, 50],
            "tokens_per_s_per_user": [1e3 / 10, 1e3 / 30],
            "tokens_per_s_per_gpu": [10 * 1e3 / 10, 50 * 1e3 / 30],
        }
    )
    found = at_target(curve, 50.0)
    assert found is not None
    assert found.tokens_per_s_per_gpu == pytest.approx(30 * 50)


def test_ratios_at_the_target_beside_the_paper_and_their_neighbours(rows):
    throughput = throughput_table(rows, backbone=BACKBONE)
    table = ratio_table(throughput, target=50.0, paper=PAPER_THROUGHPUT)
    # A step of 20 ms: the full model's holds 20 sequences, the pruned ones' 30.
    shown = table[["weights", "ratio", "paper_ratio", "full_engine", "full_slower_batch"]]
    assert shown.to_numpy().tolist() == [
        ["full, masked", pytest.approx(1.5), 1.72, "pools", 30],
        ["exported", pytest.approx(1.5), 1.81, "pools", 30],
    ]
    assert table["full_tokens_per_s_per_gpu"].tolist() == pytest.approx([1000.0] * 2)
    assert "10: 100.0, 1,000; 30: 33.3, 1,000" in ratio_markdown(table)


def test_tuned_kernels_are_compared_with_tuned_kernels(rows):
    """A step of 20 ms holds 40 sequences of the tuned full model and 50 of the exported one."""
    tuned = [
        {**decode("pools", "unhooked", 256, batch, batch / 2), "kernels": "tuned"}
        for batch in (10, 30, 90)
    ]
    tuned += [
        {**decode("m128", "unhooked", 128, batch, batch / 2.5), "kernels": "tuned"}
        for batch in (10, 30, 90)
    ]
    throughput = throughput_table([*rows, *tuned], backbone=BACKBONE)
    table = ratio_table(throughput, target=50.0, paper=PAPER_THROUGHPUT)
    found = table[["weights", "kernels", "full_engine", "ratio"]].to_numpy().tolist()
    assert found == [
        ["full, masked", "default", "pools", pytest.approx(1.5)],
        ["exported", "shipped", "pools", pytest.approx(1.5)],
        ["exported", "tuned", "pools", pytest.approx(1.25)],
    ]


def test_a_target_beyond_the_points_has_no_ratio(rows):
    throughput = throughput_table(rows, backbone=BACKBONE)
    table = ratio_table(throughput, target=500.0, paper=PAPER_THROUGHPUT)
    assert table.empty
    assert "No decoder" in ratio_markdown(table)


def test_ratios_need_the_full_model(rows):
    pruned = throughput_table(rows, backbone=BACKBONE).query("weights != 'full'")
    with pytest.raises(ArtifactError, match="uniform routing"):
        ratio_table(pruned, target=50.0, paper=PAPER_THROUGHPUT)


def test_the_overhead_is_the_paired_one_and_a_share_of_the_step_without_the_plugin(rows):
    table = mask_overhead_table(rows, backbone=BACKBONE)
    shown = ["batch", "step_ms_full", "step_ms_slimwise", "overhead_ms", "overhead_share"]
    assert table[shown].to_numpy().tolist() == [
        [10, 10.0, pytest.approx(10.2), 0.1, pytest.approx(0.01)],
        [30, 30.0, pytest.approx(30.2), 0.1, pytest.approx(0.1 / 30)],
    ]
    assert table["coverage_overhead_ms"].tolist() == [0.3, 0.3]


def test_masked_steps_stand_beside_exported_ones(rows):
    table = masked_and_exported_table(rows, backbone=BACKBONE)
    shown = ["num_kept", "batch", "step_ms_masked", "step_ms_exported", "masked_minus_exported_ms"]
    assert table[shown].to_numpy().tolist() == [[128, 10, 10, 8, 2], [128, 30, 20, 20, 0]]
    assert set(table["kernels_exported"]) == {"shipped"}


def test_coverage_prefill_and_capacity(rows):
    shares = coverage_table(rows, backbone=BACKBONE)[["num_kept", "pool_share_measured", "top_k"]]
    assert shares.to_numpy().tolist() == [[256, 0.25, 8], [128, 0.5, 8]]
    speeds = prefill_table(rows, backbone=BACKBONE)[["weights", "prefill_tokens_per_s"]]
    assert speeds.to_numpy().tolist() == [["full", 100], ["full, masked", 101], ["exported", 102]]
    held = capacity_table(rows, backbone=BACKBONE)[
        ["weights", "capacity_requests", "ratio_to_full"]
    ]
    assert held.to_numpy().tolist() == [["full", 200, 1], ["exported", 300, 1.5]]


def test_a_kind_that_was_not_measured_is_named(rows):
    without = [row for row in rows if row["kind"] != "prefill"]
    with pytest.raises(ArtifactError, match="prefill"):
        prefill_table(without, backbone=BACKBONE)
