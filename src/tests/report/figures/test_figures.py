import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from slimwise.errors import ArtifactError
from slimwise.report.figures.accuracy_by_num_kept import draw_accuracy_by_num_kept
from slimwise.report.figures.expert_load import draw_expert_load, effective_experts, load_shares
from slimwise.report.figures.keep_set_overlap import chance_jaccard, draw_keep_set_overlap
from slimwise.report.figures.output_lengths import draw_output_lengths
from slimwise.report.figures.style import save_figure
from slimwise.report.tables.accuracy import accuracy_table
from slimwise.report.tables.columns import OVERLAP_COLUMNS


def tabulated_accuracy(grades: pd.DataFrame) -> pd.DataFrame:
    origin = {"commit": "abc1234", "date": "2026-11-30", "hardware": "CPU"}
    return accuracy_table(grades.assign(**origin), backbone="mini", num_experts=64)


@pytest.fixture
def accuracy(grades) -> pd.DataFrame:
    return tabulated_accuracy(grades)


@pytest.fixture
def overlap() -> pd.DataFrame:
    rows = [
        ("mini", "mass", "reap", 32, 64, 0.7, 0.6, 0.8),
        ("mini", "mass", "reap", 16, 64, 0.5, 0.4, 0.6),
    ]
    return pd.DataFrame(rows, columns=list(OVERLAP_COLUMNS))


@pytest.fixture
def draw_all(accuracy, grades, scores, overlap):
    """Draws every figure anew, by name."""
    return lambda: {
        "accuracy_by_num_kept": draw_accuracy_by_num_kept(accuracy),
        "output_lengths": draw_output_lengths(grades),
        "expert_load": draw_expert_load(scores),
        "keep_set_overlap": draw_keep_set_overlap(overlap),
    }


def test_the_same_data_gives_the_same_bytes_in_every_format(draw_all, tmp_path):
    for folder in ("first", "second"):
        for name, figure in draw_all().items():
            save_figure(figure, tmp_path / folder / name, formats=("png", "pdf", "svg"), dpi=60)
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert len(files) == 4 * 3
    for name in files:
        first, second = ((tmp_path / folder / name).read_bytes() for folder in ("first", "second"))
        assert first == second, name


def test_the_callers_settings_survive(draw_all, tmp_path):
    with mpl.rc_context({"font.size": 21}):
        before = dict(mpl.rcParams)
        for name, figure in draw_all().items():
            save_figure(figure, tmp_path / name, formats=("png",), dpi=60)
        assert dict(mpl.rcParams) == before


def test_one_panel_per_decoding_and_benchmark(accuracy, grades):
    for figure in (draw_accuracy_by_num_kept(accuracy), draw_output_lengths(grades)):
        titles = [axes.get_title() for axes in figure.axes]
        assert titles == ["mini maths", "mini tools", "", ""]


def test_a_study_of_one_greedy_pruned_decoder_is_drawn(grades, tmp_path):
    few = grades.query("decoder in ('full', 'reap-m32') and decoding == 'greedy'")
    unlimited = few.assign(hit_budget=False)
    accuracy = tabulated_accuracy(unlimited)
    figures = (draw_accuracy_by_num_kept(accuracy), draw_output_lengths(unlimited))
    for index, figure in enumerate(figures):
        save_figure(figure, tmp_path / str(index), formats=("png",), dpi=60)
    assert len(list(tmp_path.iterdir())) == 2


def test_without_pairs_the_overlap_says_so(overlap):
    (axes,) = draw_keep_set_overlap(overlap[:0]).axes
    assert [text.get_text() for text in axes.texts] == ["one criterion: no pair"]


def test_shares_of_each_layer_sum_to_one(scores):
    shares_LE = load_shares(scores)
    assert shares_LE.shape == (3, 64)
    np.testing.assert_allclose(shares_LE.sum(axis=1), 1)
    assert shares_LE[1, 6] == 0


def test_a_layer_without_tokens_is_refused(scores):
    scores.loc[scores["layer"] == 1, "tokens"] = 0.0
    with pytest.raises(ArtifactError, match="layer 1 has no routed tokens"):
        load_shares(scores)


def test_a_layer_that_lacks_an_expert_is_refused(scores):
    with pytest.raises(ArtifactError, match=r"layer 2 .* lacks"):
        load_shares(scores[:-1])


def test_effective_experts_counts_equal_shares():
    shares_LE = np.array([[0.25] * 4, [0.5, 0.5, 0, 0], [1.0, 0, 0, 0]])
    np.testing.assert_allclose(effective_experts(shares_LE), [4, 2, 1])


def test_chance_overlap_of_half_and_of_all():
    # Halves of m share m/4 of the 3m/4 that either keeps.
    np.testing.assert_allclose(chance_jaccard(np.array([32, 64]), 64), [1 / 3, 1])
