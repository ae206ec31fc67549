from pathlib import Path

import pandas as pd
import pytest

from slimwise.errors import ArtifactError
from slimwise.paths import PAPER_RESULTS
from slimwise.report.paper.cells import read_paper_cells, with_paper_values

CELLS = Path(__file__).parents[4] / PAPER_RESULTS
SETTING = {
    "backbone": "Qwen3.6-35B-A3B",
    "criterion": "reap",
    "num_kept": 64,
    "mode": "slimwise",
    "distilled": "none",
    "decoding": "sampled",
    "benchmark": "gsm8k",
}


def beside(**changes):
    """The paper's accuracy, p50 and p90 for the setting with these changes."""
    rows = with_paper_values(pd.DataFrame([SETTING | changes]), read_paper_cells(CELLS))
    return rows.filter(like="paper_").iloc[0].tolist()


def test_a_printed_cell_stands_beside_the_same_setting_only():
    assert beside()[0] == 0.867
    assert beside(backbone="qwen3.6-35b-a3b")[0] == 0.867
    others = (
        {"backbone": "miniature"},
        {"criterion": "ean"},
        {"num_kept": 32},
        {"mode": "reverse"},
        {"distilled": "zero"},
        {"decoding": "greedy"},
        {"benchmark": "mini_maths"},
    )
    for change in others:
        assert pd.isna(beside(**change)).all()


def test_lengths_are_in_tokens_and_accuracy_may_be_missing_beside_them():
    accuracy, p50, p90 = beside(benchmark="math_500")
    assert pd.isna([accuracy, p50]).all()
    assert p90 == 32800


def test_a_cell_whose_criterion_nobody_prints_stands_beside_none():
    pruned = {"num_kept": 128, "mode": "pruned", "benchmark": "math_500"}
    assert (read_paper_cells(CELLS)["length_p50_tokens"] == 6600).any()
    for criterion in ("none", "mass", "ean", "reap"):
        assert pd.isna(beside(**pruned, criterion=criterion)).all()


def test_rows_keep_their_order_and_index():
    frame = pd.DataFrame([SETTING | {"num_kept": 32}, SETTING, SETTING], index=[7, 3, 5])
    rows = with_paper_values(frame, read_paper_cells(CELLS))
    assert rows.index.tolist() == [7, 3, 5]
    assert rows["paper_accuracy"].isna().tolist() == [True, False, False]


def test_every_cell_of_ours_prints_something_and_names_its_source():
    cells = read_paper_cells(CELLS)
    assert cells[["accuracy", "length_p50_tokens", "length_p90_tokens"]].notna().any(axis=1).all()
    assert cells["source"].notna().all()
    assert not cells.duplicated(list(SETTING)).any()
    assert cells["accuracy"].dropna().between(0, 1).all()


@pytest.mark.parametrize("text", [None, "backbone,accuracy\nx,1\n"])
def test_missing_or_foreign_results_are_refused(tmp_path, text):
    path = tmp_path / "evaluation.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ArtifactError, match="Restore the file"):
        read_paper_cells(path)
