import pandas as pd
import pytest

from slimwise.errors import ArtifactError
from slimwise.report.statistics.bootstrap import Bootstrap
from slimwise.report.tables.accuracy import accuracy_table
from slimwise.report.tables.columns import COMPARISON_COLUMNS
from slimwise.report.tables.comparison import comparison_table

BOOTSTRAP = Bootstrap(num_resamples=400, confidence=0.95, seed=0)
PAPER = pd.DataFrame(
    [("mini", "reap", 32, "slimwise", "uniform", "sampled", "maths", 0.7, 12.0, 34.0, "us", "")],
    columns=[
        "backbone",
        "criterion",
        "num_kept",
        "mode",
        "distilled",
        "decoding",
        "benchmark",
        "accuracy",
        "length_p50_tokens",
        "length_p90_tokens",
        "source",
        "note",
    ],
)


def graded(decoder="full", mode="full", *, correct, lengths=None, **setting):
    """Answers of one setting: a list of runs, each a list with one verdict an item."""
    lengths = lengths or [[10] * len(run) for run in correct]
    rows = [
        {
            "decoder": decoder,
            "mode": mode,
            "deployment": setting.get("deployment", "colocated"),
            "benchmark": setting.get("benchmark", "maths"),
            "decoding": setting.get("decoding", "sampled"),
            "item_id": str(item),
            "run": run,
            "correct": verdict,
            "hit_budget": False,
            "completion_tokens": lengths[run][item],
            "reason": "" if verdict else "wrong value",
            "commit": decoder,
            "date": "2026-11-30",
            "hardware": "CPU",
        }
        for run, verdicts in enumerate(correct)
        for item, verdict in enumerate(verdicts)
    ]
    return pd.DataFrame(rows)


def compared(*parts):
    grades = pd.concat(parts, ignore_index=True)
    accuracies = accuracy_table(grades, backbone="mini", num_experts=64)
    return comparison_table(accuracies, grades, bootstrap=BOOTSTRAP, paper=PAPER)


def test_difference_to_full_is_paired_by_item():
    full = graded(correct=[[True, True, True, False]] * 2)
    pruned = graded("reap-m32", "pruned", correct=[[True, True, False, False]] * 2)
    rows = compared(full, pruned)
    assert list(rows.columns[:-3]) == list(COMPARISON_COLUMNS)
    difference = rows.filter(like="accuracy_difference").to_numpy().tolist()
    assert difference[0] == [0.0, 0.0, 0.0]
    # Item differences 0, 0, -1, 0: a resample holds item 2 up to four times, most often 0 to 3.
    assert difference[1] == [-0.25, pytest.approx(-0.75), 0.0]
    assert rows["num_items"].tolist() == [4, 4]
    assert rows["num_resamples"].tolist() == [400, 400]


def test_a_mean_over_categories_is_the_published_one_in_accuracy_and_difference():
    bfcl = {"benchmark": "bfcl_v4_irrelevance"}
    ids = {"0": "irrelevance_0", "1": "irrelevance_1", "2": "live_irrelevance_0"}
    full = graded(correct=[[True, True, True]], **bfcl)
    pruned = graded("reap-m32", "pruned", correct=[[True, True, False]], **bfcl)
    rows = compared(*(part.replace({"item_id": ids}) for part in (full, pruned)))
    assert rows["accuracy_mean"].tolist() == pytest.approx([1, 0.5])
    assert rows["accuracy_difference"].tolist() == pytest.approx([0, -0.5])


def test_each_benchmark_and_decoding_has_its_own_full():
    rows = compared(
        graded(correct=[[True, False]]),
        graded(correct=[[True, True]], decoding="greedy"),
        graded(correct=[[False, False]], benchmark="code"),
        graded("mass-m8", "pruned", correct=[[True, False]]),
        graded("mass-m8", "pruned", correct=[[True, False]], decoding="greedy"),
        graded("mass-m8", "pruned", correct=[[True, False]], benchmark="code"),
    )
    pruned = rows[rows["mode"] == "pruned"].set_index(["decoding", "benchmark"])
    assert pruned["accuracy_difference"].to_dict() == {
        ("sampled", "maths"): 0.0,
        ("sampled", "code"): 0.5,
        ("greedy", "maths"): -0.5,
    }


def test_full_of_the_same_deployment_comes_first():
    apart = {"deployment": "disaggregated"}
    slimwise = graded("reap-m32", "slimwise", correct=[[True, True]], **apart)
    together = graded(correct=[[False, False]])
    rows = compared(together, slimwise)
    assert rows["accuracy_difference"].tolist() == [0.0, 1.0]
    rows = compared(together, graded(correct=[[True, False]], **apart), slimwise)
    assert rows["accuracy_difference"].tolist() == [0.0, 0.0, 0.5]


def test_length_intervals_surround_the_quantiles():
    lengths = [[10, 20, 30, 40, 50], [10, 20, 30, 40, 200]]
    row = compared(graded(correct=[[True] * 5] * 2, lengths=lengths)).iloc[0]
    assert row["length_p50_low_tokens"] < row["length_p50_tokens"] == 30
    assert row["length_p90_low_tokens"] < row["length_p90_tokens"] < row["length_p90_high_tokens"]


def test_the_papers_value_stands_beside_the_same_setting():
    rows = compared(
        graded(correct=[[True]]),
        graded("reap-m32", "slimwise", correct=[[True]]),
        graded("reap-m32-kd_uniform", "slimwise", correct=[[True]]),
    )
    assert rows["paper_accuracy"].isna().tolist() == [True, True, False]
    assert rows.iloc[2].filter(like="paper_").tolist() == [0.7, 12.0, 34.0]


def test_other_items_than_the_full_decoders_are_refused():
    with pytest.raises(ArtifactError, match="reap-m32 on maths: 1 items, 1 among them"):
        compared(graded(correct=[[True, True]]), graded("reap-m32", "pruned", correct=[[True]]))


def test_a_benchmark_that_full_never_answered_is_refused():
    with pytest.raises(ArtifactError, match="full decoder on code, sampled"):
        compared(
            graded(correct=[[True]]),
            graded("reap-m32", "pruned", correct=[[True]], benchmark="code"),
        )
