import pandas as pd
import pytest

from slimwise.report.tables.accuracy import accuracy_table
from slimwise.report.tables.categories import categories_table
from slimwise.report.tables.columns import CATEGORY_COLUMNS


def graded(benchmark, correct):
    """Sampled answers of the full decoder: the verdicts of each run by item."""
    rows = [
        {
            "decoder": "full",
            "mode": "full",
            "deployment": "colocated",
            "benchmark": benchmark,
            "decoding": "sampled",
            "item_id": item,
            "run": run,
            "correct": verdict,
            "hit_budget": False,
            "completion_tokens": 10,
            "commit": "abc1234",
            "date": "2026-11-30",
            "hardware": "CPU",
        }
        for item, verdicts in correct.items()
        for run, verdict in enumerate(verdicts)
    ]
    return pd.DataFrame(rows)


def tables(grades):
    accuracies = accuracy_table(grades, backbone="mini", num_experts=64)
    return accuracies, categories_table(accuracies, grades)


def test_each_category_has_a_row_and_the_score_is_their_mean():
    correct = {
        "simple_python_0": [True, True],
        "simple_python_1": [True, False],
        "multiple_0": [False, True],
    }
    accuracies, rows = tables(graded("bfcl_v4_non_live_ast", correct))
    assert list(rows.columns[:-3]) == list(CATEGORY_COLUMNS)
    measured = rows[["category", "num_items", "runs", "accuracy_mean"]].to_numpy().tolist()
    assert measured == [["multiple", 1, 2, 0.5], ["simple_python", 2, 2, 0.75]]
    # Runs at 1 and 1/2.
    assert rows["accuracy_std"][1] == pytest.approx(0.125**0.5)
    assert accuracies["accuracy_mean"][0] == pytest.approx((0.5 + 0.75) / 2)


def test_other_benchmarks_have_none():
    _, rows = tables(graded("gsm8k", {"0": [True]}))
    assert rows.empty
    assert list(rows.columns[:-3]) == list(CATEGORY_COLUMNS)
