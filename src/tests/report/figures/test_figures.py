import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from slimwise.core.vocabulary import DecoderId, Decoding
from slimwise.errors import ArtifactError
from slimwise.report.figures.accuracy_by_num_kept import draw_accuracy_by_num_kept
from slimwise.report.figures.distillation import draw_distillation
from slimwise.report.figures.expert_load import (
    draw_expert_load,
    draw_load_by_component,
    effective_experts,
    load_shares,
)
from slimwise.report.figures.keep_set_overlap import (
    chance_jaccard,
    draw_keep_set_overlap,
    draw_overlap_by_layer,
)
from slimwise.report.figures.length_accuracy import draw_length_accuracy
from slimwise.report.figures.output_lengths import draw_output_lengths
from slimwise.report.figures.style import save_figure
from slimwise.report.figures.training_free import draw_training_free
from slimwise.report.statistics.bootstrap import Bootstrap
from slimwise.report.tables.accuracy import accuracy_table
from slimwise.report.tables.columns import OVERLAP_BY_LAYER_COLUMNS, OVERLAP_COLUMNS

BOOTSTRAP = Bootstrap(num_resamples=100, confidence=0.95, seed=0)


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
def by_layer() -> pd.DataFrame:
    rows = [("mini", "mass", "reap", 32, 64, layer, 0.6 + 0.1 * layer) for layer in range(3)]
    return pd.DataFrame(rows, columns=list(OVERLAP_BY_LAYER_COLUMNS))


@pytest.fixture
def draw_all(accuracy, grades, scores, overlap, by_layer, distill_log):
    """Draws every figure anew, by name."""
    tokens_LE = scores["tokens"].to_numpy().reshape(3, 64)
    logs = {DecoderId.parse("reap-m32-kd_uniform"): distill_log}
    return lambda: {
        "accuracy_by_num_kept": draw_accuracy_by_num_kept(accuracy),
        "output_lengths": draw_output_lengths(grades),
        "expert_load": draw_expert_load(scores),
        "load_by_component": draw_load_by_component({"maths": tokens_LE, "code": tokens_LE}),
        "keep_set_overlap": draw_keep_set_overlap(overlap),
        "overlap_by_layer": draw_overlap_by_layer(by_layer),
        "training_free": draw_training_free(accuracy, grades, Decoding.SAMPLED, BOOTSTRAP),
        "length_accuracy": draw_length_accuracy(accuracy),
        "distillation": draw_distillation(logs),
    }


def test_the_same_data_gives_the_same_bytes(draw_all, tmp_path):
    for folder in ("first", "second"):
        for name, figure in draw_all().items():
            save_figure(figure, tmp_path / folder / name, formats=("svg",), dpi=60)
    files = sorted(path.name for path in (tmp_path / "first").iterdir())
    assert len(files) == 9
    for name in files:
        first, second = ((tmp_path / folder / name).read_bytes() for folder in ("first", "second"))
        assert first == second, name


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_no_format_carries_a_time_or_a_random_name(overlap, tmp_path, suffix):
    for stem in ("first", "second"):
        figure = draw_keep_set_overlap(overlap)
        save_figure(figure, tmp_path / stem, formats=(suffix,), dpi=60)
    first, second = (tmp_path / f"{stem}.{suffix}" for stem in ("first", "second"))
    assert first.read_bytes() == second.read_bytes()


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
    few = grades.query("decoder in ('full', 'reap-m32') and mode != 'slimwise'")
    unlimited = few[few["decoding"] == "greedy"].assign(hit_budget=False)
    accuracy = tabulated_accuracy(unlimited)
    figures = (
        draw_accuracy_by_num_kept(accuracy),
        draw_output_lengths(unlimited),
        draw_training_free(accuracy, unlimited, Decoding.GREEDY, BOOTSTRAP),
        draw_length_accuracy(accuracy),
    )
    for index, figure in enumerate(figures):
        save_figure(figure, tmp_path / str(index), formats=("png",), dpi=60)
    assert len(list(tmp_path.iterdir())) == len(figures)


def test_equal_accuracies_of_two_criteria_do_not_cover_each_other(accuracy):
    lines = draw_accuracy_by_num_kept(accuracy.assign(accuracy_mean=0.5)).axes[0].lines
    places = {line.get_marker(): np.asarray(line.get_xdata())[0] for line in lines}
    mass, reap = places["o"], places["^"]
    assert (mass * reap, reap / mass) == pytest.approx((32**2, 2**0.05))


def test_deployments_of_one_decoder_are_drawn_apart(grades):
    is_slimwise = (grades["decoder"] == "reap-m32") & (grades["mode"] == "slimwise")
    apart = grades[is_slimwise].assign(deployment="disaggregated")
    both = pd.concat([grades, apart], ignore_index=True)
    by_length = draw_output_lengths(both).axes[0]
    accuracy = tabulated_accuracy(both)
    by_count = draw_accuracy_by_num_kept(accuracy).axes[0]
    ridges = [tick.get_text() for tick in by_length.get_yticklabels()]
    lines = by_count.get_legend_handles_labels()[1]
    arms = [text.get_text() for text in draw_length_accuracy(accuracy).legends[0].get_texts()]
    uses = ((ridges, "REAP 32 slimwise"), (lines, "REAP slimwise"), (arms, "slimwise"))
    for labels, name in uses:
        assert name in labels
        assert f"{name} (disaggregated)" in labels
    compared = draw_training_free(accuracy, both, Decoding.SAMPLED, BOOTSTRAP).axes
    assert [len(marked_points(axes)) for axes in compared] == [3, 3, 3, 3]


def notes(figure):
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def test_a_note_stands_in_for_what_a_study_lacks(grades):
    lone = grades.query("decoder == 'full' and decoding == 'greedy'")
    accuracy = tabulated_accuracy(lone)
    sampled = draw_training_free(accuracy, lone, Decoding.SAMPLED, BOOTSTRAP)
    assert notes(sampled) == ["no sampled answers in this study"]
    assert notes(draw_length_accuracy(accuracy)) == ["no pruned decoder in this study"]
    assert notes(draw_distillation({})) == ["no distilled decoder in this study"]


def test_the_full_decoder_alone_is_drawn(grades):
    lone = grades[grades["decoder"] == "full"]
    figure = draw_training_free(tabulated_accuracy(lone), lone, Decoding.GREEDY, BOOTSTRAP)
    assert [axes.get_title() for axes in figure.axes[:2]] == [
        "mini maths (n=8)",
        "mini tools (n=8)",
    ]


def test_training_free_compares_two_modes_at_half_and_no_distilled_decoder(accuracy, grades):
    figure = draw_training_free(accuracy, grades, Decoding.SAMPLED, BOOTSTRAP)
    upper, lower = figure.axes[0], figure.axes[2]
    assert [label.get_text() for label in upper.get_xticklabels()] == ["Mass", "REAP"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["full", "pruned", "slimwise", "(a) 95% interval over items"]
    # Marked on the left, pruned Mass and REAP, and on the right REAP's slimwise.
    is_shown = accuracy.eval("benchmark == 'mini_maths' and decoding == 'sampled'")
    at_half = accuracy[is_shown & (accuracy["num_kept"] == 32) & (accuracy["distilled"] == "none")]
    places, accuracies = zip(*marked_points(upper), strict=True)
    assert places == pytest.approx((-0.14, 0.86, 1.14))
    assert list(accuracies) == list(at_half["accuracy_mean"])
    assert len(marked_points(lower)) == 3


def marked_points(axes):
    """Where lines with a marker begin."""
    lines = [line for line in axes.lines if line.get_marker() != "None"]
    return [tuple(np.asarray(line.get_xydata())[0]) for line in lines]


def test_length_accuracy_has_a_row_a_criterion_and_an_entry_an_arm(accuracy):
    figure = draw_length_accuracy(accuracy)
    labels = [axes.get_ylabel() for axes in figure.axes[::2]]
    assert labels == ["Mass: accuracy (%)", "REAP: accuracy (%)"]
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    arms = ["full", "pruned", "slimwise", "slimwise + distilled"]
    assert entries == [*arms, "large to small: 32, 16 experts kept"]


def test_training_curves_are_means_over_a_twentieth_of_the_steps(distill_log):
    log = pd.concat([distill_log, distill_log[:20]])
    decoders = [DecoderId.parse(f"reap-m32-kd_{rule}") for rule in ("zero", "uniform")]
    figure = draw_distillation({decoder: log for decoder in decoders})
    loss, kl = figure.axes
    assert loss.get_title() == "REAP 32\nn = 0.018 M, 0.018 M tokens"
    dots, means = loss.lines[:2]
    assert np.array_equal(np.asarray(dots.get_ydata()), log["loss"])
    # A twentieth of 60 steps: the step and its two neighbours.
    assert np.asarray(means.get_ydata())[1] == pytest.approx(log["loss"][:3].mean())
    figure.draw_without_rendering()
    assert {"0.05", "0.1", "0.2"} <= {label.get_text() for label in loss.get_yticklabels()}
    assert kl.get_ylabel() == "KL term (nats a token)"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["s uniform", "s = 0"]


def test_without_pairs_the_overlap_says_so(overlap):
    (axes,) = draw_keep_set_overlap(overlap[:0]).axes
    assert [text.get_text() for text in axes.texts] == ["one criterion: no pair"]


def test_the_overlap_of_every_layer_stands_beside_chance(by_layer):
    (axes,) = draw_overlap_by_layer(by_layer).axes
    pair, chance = axes.lines
    assert np.array_equal(np.asarray(pair.get_ydata()), by_layer["jaccard"])
    assert np.asarray(chance.get_ydata())[0] == pytest.approx(1 / 3)
    assert axes.get_title() == "32 of 64 kept"


def test_components_are_drawn_in_one_order_of_experts():
    components = {"maths": np.array([[4.0, 1, 1]]), "code": np.array([[1.0, 1, 8]])}
    maths, code, _ = draw_load_by_component(components).axes
    # Expert 2 has most tokens of both together, then expert 0.
    assert heat(maths) == pytest.approx([0.5, 2, 0.5])
    assert heat(code) == pytest.approx([2.4, 0.3, 0.3])


def heat(axes):
    """The values of a heat map, row by row."""
    (mesh,) = axes.collections
    return mesh.get_array().ravel().tolist()


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
