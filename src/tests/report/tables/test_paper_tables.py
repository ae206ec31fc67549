from itertools import product

import pandas as pd
import pytest

from slimwise.report.selection import at_half
from slimwise.report.tables.columns import COMPARISON_COLUMNS
from slimwise.report.tables.paper_tables import PAPER_TABLES

ORIGIN = {"commit": "abc1234", "date": "2026-11-30", "hardware": "CPU"}


def row(criterion="reap", num_kept=32, mode="pruned", **values):
    """One row of the comparison table, of a full decoder with 64 experts unless told otherwise."""
    measured = dict.fromkeys(COMPARISON_COLUMNS, float("nan")) | {
        "backbone": "mini",
        "criterion": criterion,
        "num_kept": num_kept,
        "mode": mode,
        "deployment": "colocated",
        "distilled": "none",
        "decoding": "sampled",
        "benchmark": "gsm8k",
        "num_items": 50,
        "runs": 3,
        "accuracy_mean": 0.5,
        "accuracy_std": 0.01,
        "accuracy_difference": -0.25,
        "accuracy_difference_low": -0.3125,
        "accuracy_difference_high": 0.0,
        "length_p50_tokens": 48.5,
        "length_p50_low_tokens": 40.0,
        "length_p50_high_tokens": 52.0,
        "length_p90_tokens": 2345.0,
        "length_p90_low_tokens": 2000.0,
        "length_p90_high_tokens": 2400.0,
        "budget_hit_rate": 0.125,
        "termination_rate": 0.75,
        "num_resamples": 2000,
        "confidence": 0.95,
    }
    return {**measured, **values, **ORIGIN}


FULL = row("none", 64, "full")


def selected(name, *rows):
    """Criterion, kept, mode and distillation of the rows that the table takes."""
    chosen = PAPER_TABLES[name].select(pd.DataFrame([FULL, *rows]))
    settings = chosen[["criterion", "num_kept", "mode", "distilled"]]
    return settings.to_numpy().tolist()[1:]


@pytest.fixture
def everything():
    settings = product(("mass", "reap"), (48, 32, 16), ("pruned", "slimwise", "reverse"))
    free = [row(criterion, kept, mode) for criterion, kept, mode in settings]
    distilled = [
        row(criterion, kept, "slimwise", distilled=rule)
        for criterion, kept, rule in product(("mass", "reap"), (32, 16), ("uniform", "zero"))
    ]
    greedy = [each | {"decoding": "greedy"} for each in (*free, *distilled)]
    return [*free, *distilled, *greedy]


def test_table_1_is_every_criterion_at_half_without_reverse_and_ablation(everything):
    assert selected("table_1", *everything) == [
        ["mass", 32, "pruned", "none"],
        ["mass", 32, "slimwise", "none"],
        ["reap", 32, "pruned", "none"],
        ["reap", 32, "slimwise", "none"],
        ["mass", 32, "slimwise", "uniform"],
        ["reap", 32, "slimwise", "uniform"],
    ]


def test_table_2_is_reap_at_every_count_with_the_ablation(everything):
    rows = selected("table_2", *everything)
    assert {criterion for criterion, *_ in rows} == {"reap"}
    assert {kept for _, kept, *_ in rows} == {48, 32, 16}
    assert {(mode, rule) for *_, mode, rule in rows} == {
        ("pruned", "none"),
        ("slimwise", "none"),
        ("slimwise", "uniform"),
        ("slimwise", "zero"),
    }


def test_table_3_is_all_modes_training_free_and_table_4_everything_sampled(everything):
    assert len(selected("table_3", *everything)) == 2 * 3 * 3
    assert {rule for *_, rule in selected("table_3", *everything)} == {"none"}
    assert len(selected("table_4", *everything)) == 2 * 3 * 3 + 8


def test_a_study_that_samples_nothing_shows_its_greedy_rows():
    rows = pd.DataFrame([FULL, row()]).assign(decoding="greedy")
    for table in PAPER_TABLES.values():
        assert len(table.select(rows)) == 2


def test_a_study_without_reap_shows_its_own_criterion():
    assert selected("table_2", row("ean"), row("ean", 16)) == [
        ["ean", 32, "pruned", "none"],
        ["ean", 16, "pruned", "none"],
    ]


def test_half_is_the_nearest_count_and_the_larger_of_two():
    for counts, nearest in (((48, 30), 30), ((48, 16), 48), ((8,), 8)):
        rows = at_half(pd.DataFrame([FULL, *(row(num_kept=count) for count in counts)]))
        assert rows["num_kept"].tolist() == [64, nearest]


def test_the_full_decoder_alone_makes_every_table():
    for table in PAPER_TABLES.values():
        rows = table.select(pd.DataFrame([FULL]))
        assert "| full | " in table.markdown(rows)
        assert "minus" not in table.markdown(rows)


def test_markdown_has_a_line_a_decoder_and_a_column_a_benchmark():
    rows = pd.DataFrame(
        [
            FULL,
            row(paper_accuracy=0.949, paper_length_p90_tokens=11700.0),
            row(benchmark="mini_code"),
            row(mode="slimwise", distilled="zero", deployment="disaggregated"),
        ]
    )
    text = PAPER_TABLES["table_2"].markdown(rows)
    assert "| experts | decoder | GSM8K | mini code |" in text
    assert "| REAP 32 | pruned | 0.500 [0.949] | 0.500 |" in text
    assert "| REAP 32 | slimwise + distilled, s = 0 (disaggregated) | 0.500 |  |" in text
    assert "| REAP 32 | pruned | -0.250 (-0.312 to +0.000) | -0.250 (-0.312 to +0.000) |" in text
    assert "| REAP 32 | pruned | 49 / 2,345 [- / 11,700] | 49 / 2,345 |" in text
    assert "| REAP 32 | pruned | 75.0 / 12.5 | 75.0 / 12.5 |" in text
    assert "In square brackets" in text
    assert "items a benchmark: 50" in text
    assert "Commit abc1234; CPU; 2026-11-30." in text


def test_without_a_printed_cell_the_paper_is_not_mentioned():
    assert "paper" not in PAPER_TABLES["table_2"].markdown(pd.DataFrame([FULL, row()]))


def test_phases_and_spread_have_cells_of_their_own():
    rows = pd.DataFrame([FULL, row(mode="reverse")])
    phases = PAPER_TABLES["table_3"].markdown(rows)
    assert "| experts | prefill | decode | mode | GSM8K |" in phases
    assert "| REAP 32 | pruned | full | reverse | 0.500 |" in phases
    spread = PAPER_TABLES["table_4"].markdown(rows)
    assert "| REAP 32 | reverse | 0.500 (0.010) |" in spread
    assert "| REAP 32 | reverse | 2,345 (2,000 to 2,400) |" in spread


def test_one_run_of_one_item_has_no_brackets():
    unknown = {name: float("nan") for name in FULL if "_low" in name or "_high" in name}
    rows = pd.DataFrame([FULL, row()]).assign(**unknown, accuracy_std=float("nan"))
    means = PAPER_TABLES["table_1"].markdown(rows)
    assert "| REAP 32 | pruned | -0.250 |" in means
    spread = PAPER_TABLES["table_4"].markdown(rows)
    for cell in ("0.500", "49", "2,345"):
        assert f"| REAP 32 | pruned | {cell} |" in spread
