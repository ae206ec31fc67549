import numpy as np
import pytest

from slimwise.report.measured.split_rules import difference_interval, split_rule_table
from slimwise.report.measured.stage_speed import distillation_table, export_table, scoring_table

ORIGIN = {"commit": "abc1234", "date": "2026-11-30", "hardware": "one GPU"}


def test_scoring_beside_the_reap_observer_of_the_same_shape():
    speeds = {
        ("qwen3_6_35b_a3b", "slimwise"): 600.0,
        ("qwen3_6_35b_a3b", "reap_observer"): 20.0,
        ("gemma4_26b_a4b", "slimwise"): 800.0,
        ("gemma4_26b_a4b", "reap_observer"): 100.0,
    }
    rows = [
        {
            "shape": shape,
            "num_layers": None,
            "implementation": implementation,
            "tokens_per_s": speed,
            "peak_gib": 60.0,
            "mixture_minutes": 90.0,
            "batch_sequences": 8,
            "sequence_tokens": 2048,
            **ORIGIN,
        }
        for (shape, implementation), speed in speeds.items()
    ]
    table = scoring_table(rows)
    assert table["ratio_to_reap_observer"].tolist() == [30.0, 1.0, 8.0, 1.0]
    assert table["mixture_hours"].tolist() == [1.5] * 4
    assert table["backbone"].iloc[2] == "gemma-4-26B-A4B"


def test_distillation_beside_two_copies_of_the_same_depth_and_length():
    def row(implementation: str, layers: int, speed: float | None, failure: str | None = None):
        return {
            "shape": "qwen3_6_35b_a3b",
            "num_layers": layers,
            "implementation": implementation,
            "route": "cached" if implementation == "slimwise" else "whole",
            "sequence_tokens": 4096,
            "tokens_per_s": speed,
            "peak_gib": None if speed is None else 50.0,
            "training_hours": None if speed is None else 20.0,
            "failure": failure,
            **ORIGIN,
        }

    rows = [
        row("slimwise", 8, 30.0),
        row("two_copies", 8, 10.0),
        row("slimwise", 40, 6.0),
        row("two_copies", 40, None, "out of memory"),
    ]
    table = distillation_table(rows)
    assert table[["num_layers", "implementation"]].to_numpy().tolist() == [
        [40, "slimwise"],
        [40, "two_copies"],
        [8, "slimwise"],
        [8, "two_copies"],
    ]
    np.testing.assert_array_equal(table["ratio_to_two_copies"], [np.nan, np.nan, 3.0, 1.0])
    np.testing.assert_array_equal(table["training_hours"], [20.0, np.nan, np.nan, np.nan])
    assert table["failure"].iloc[1] == "out of memory"


def test_export_beside_a_copy():
    row = {
        "shape": "qwen3_6_35b_a3b",
        "num_layers": 12,
        "num_kept": 128,
        "checkpoint_gib": 20.0,
        "pruned_gib": 10.0,
        "gib_per_s": 0.3,
        "copy_gib_per_s": 0.4,
        "peak_rss_gib": 2.0,
        "export_s": [30.0, 31.0, 32.0],
        "copy_s": [20.0, 21.0, 22.0],
        **ORIGIN,
    }
    earlier = row | {"pruned_gib": 10.001, "gib_per_s": 0.1}
    table = export_table([earlier, row])
    assert table["ratio_to_copy"].tolist() == pytest.approx([0.75])
    assert table["repeats"].tolist() == [3]


def test_the_interval_of_three_differences_is_students():
    # Mean 0.2, deviation 0.1; t at 97.5 % with 2 degrees of freedom is 4.302653.
    low, high = difference_interval(np.array([0.1, 0.2, 0.3]), 0.95)
    half = 4.302653 * 0.1 / np.sqrt(3)
    assert (low, high) == pytest.approx((0.2 - half, 0.2 + half), rel=1e-6)
    assert np.isnan(difference_interval(np.array([0.1]), 0.95)).all()


def test_rules_are_paired_by_seed_and_stand_beside_what_was_not_trained():
    def row(rule: str, seed: int, accuracy: float, steps: int = 60, mode: str = "slimwise"):
        return {
            "criterion": "none" if mode == "full" else "reap",
            "num_kept": 64 if mode == "full" else 16,
            "rule": rule,
            "steps": steps,
            "seed": seed,
            "benchmark": "mini_tools",
            "items": 100,
            "decoding": "greedy",
            "mode": mode,
            "accuracy": accuracy,
            **ORIGIN,
        }

    rows = [
        row("uniform", 1, 0.9),
        row("uniform", 0, 0.5),
        row("zero", 0, 0.4),
        row("zero", 1, 0.6),
        row("uniform", 0, 0.8, steps=440),
        row("none", 0, 0.1, steps=0),
        row("none", 0, 0.95, steps=0, mode="full"),
    ]
    table = split_rule_table(rows, confidence=0.95)
    assert len(table) == 1, "440 steps have one rule only"
    found = table.iloc[0]
    assert found["seeds"] == 2
    assert found[["accuracy_uniform_mean", "accuracy_zero_mean"]].tolist() == [0.7, 0.5]
    # Differences 0.1 and 0.3, in the order of the seeds.
    assert found["difference_mean"] == pytest.approx(0.2)
    assert found["difference_high"] == pytest.approx(0.2 + 12.7062 * 0.1, rel=1e-4)
    assert found[["accuracy_full", "accuracy_undistilled"]].tolist() == [0.95, 0.1]
