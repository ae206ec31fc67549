import pandas as pd
import pytest

from slimwise.artifacts.tables import PROVENANCE_COLUMNS
from slimwise.errors import ArtifactError
from slimwise.report.tables.accuracy import accuracy_table
from slimwise.report.tables.columns import ACCURACY_COLUMNS


def graded(decoder="full", benchmark="maths", run=0, decoding="sampled", **answers):
    """Answers of one run; each keyword is a list with one value an item."""
    correct = answers.get("correct", [True])
    return pd.DataFrame(
        {
            "decoder": decoder,
            "mode": "full" if decoder == "full" else "pruned",
            "deployment": "colocated",
            "benchmark": benchmark,
            "item_id": [str(index) for index in range(len(correct))],
            "run": run,
            "decoding": decoding,
            "correct": correct,
            "hit_budget": answers.get("hit_budget", [False] * len(correct)),
            "completion_tokens": answers.get("lengths", [10] * len(correct)),
            "commit": decoder,
            "date": "2026-11-30",
            "hardware": "CPU",
        }
    )


def table(*parts):
    return accuracy_table(pd.concat(parts), backbone="mini", num_experts=64)


def test_mean_and_deviation_are_over_runs():
    rows = table(
        graded(run=0, correct=[True, True, True, False]),
        graded(run=1, correct=[True, True, False, False]),
        graded(run=2, correct=[True, False, False, False]),
    )
    assert rows.loc[0, "runs"] == 3
    assert rows.loc[0, "accuracy_mean"] == pytest.approx(0.5)
    # Runs at 0.75, 0.5 and 0.25: sqrt((0.0625 + 0 + 0.0625) / 2).
    assert rows.loc[0, "accuracy_std"] == pytest.approx(0.25)


def test_one_run_has_no_deviation():
    rows = table(graded(decoding="greedy"))
    assert rows["accuracy_std"].isna().all()


def test_lengths_cover_all_answers_of_all_runs_also_those_cut_by_the_budget():
    rows = table(
        graded(run=0, correct=[True] * 5, lengths=[1, 2, 3, 4, 5]),
        graded(
            run=1,
            correct=[True] * 3 + [False] * 2,
            lengths=[6, 7, 8, 9, 256],
            hit_budget=[False] * 4 + [True],
        ),
    )
    assert rows.loc[0, "length_p50_tokens"] == pytest.approx(5.5)
    # The 0.9 quantile of ten values lies a tenth of the way from the ninth to the tenth.
    assert rows.loc[0, "length_p90_tokens"] == pytest.approx(9 + 0.1 * 247)
    assert rows.loc[0, "budget_hit_rate"] == pytest.approx(0.1)


def test_full_decoder_keeps_every_expert_under_no_criterion():
    rows = table(graded(), graded("reap-m32"), graded("reap-m32-kd_uniform"))
    assert list(rows.columns) == [*ACCURACY_COLUMNS, *PROVENANCE_COLUMNS]
    assert list(rows["commit"]) == ["full", "reap-m32", "reap-m32-kd_uniform"]
    named = rows[["backbone", "criterion", "num_kept", "distilled"]].to_numpy().tolist()
    assert named == [
        ["mini", "none", 64, "none"],
        ["mini", "reap", 32, "none"],
        ["mini", "reap", 32, "uniform"],
    ]


def test_rows_follow_one_order_whatever_the_order_of_the_files():
    decoders = ("reap-m16", "full", "mass-m8", "reap-m32", "mass-m16")
    parts = [
        graded(decoder, benchmark, decoding=decoding)
        for decoder in decoders
        for decoding in ("greedy", "sampled")
        for benchmark in ("tools", "code")
    ]
    rows = table(*parts)
    order = rows[["criterion", "num_kept"]].drop_duplicates().to_numpy().tolist()
    assert order == [["none", 64], ["mass", 16], ["mass", 8], ["reap", 32], ["reap", 16]]
    first = rows[["decoding", "benchmark"]][:4].to_numpy().tolist()
    assert first == [
        ["sampled", "tools"],
        ["sampled", "code"],
        ["greedy", "tools"],
        ["greedy", "code"],
    ]


def test_an_answer_graded_twice_is_refused():
    with pytest.raises(ArtifactError, match=r"item 0 of run 0 \(full, .*graded twice"):
        table(graded(), graded())


def test_a_run_that_lacks_an_item_is_refused():
    with pytest.raises(ArtifactError, match=r"item 1 of run 0 .* missing from another run"):
        table(graded(run=0, correct=[True, True]), graded(run=1, correct=[True]))


def test_no_full_decoder_is_refused():
    with pytest.raises(ArtifactError, match="full decoder"):
        table(graded("reap-m32"))
    with pytest.raises(ArtifactError, match="full decoder"):
        table(graded()[:0])
