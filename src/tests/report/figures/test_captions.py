import pytest

from slimwise.report.figures.captions import figure_captions
from slimwise.report.tables.accuracy import accuracy_table


@pytest.fixture
def captions(grades):
    origin = {"commit": "abc1234", "date": "2026-11-30", "hardware": "CPU"}
    accuracy = accuracy_table(grades.assign(**origin), backbone="mini", num_experts=64)
    return figure_captions(accuracy, grades)


def test_captions_say_whose_answers_and_how_many(captions):
    study = "Backbone: mini; runs: 3 sampled and 1 greedy; items: mini maths 8, mini tools 8."
    for name in ("figure_3", "figure_5", "output_lengths", "length_accuracy"):
        assert captions[name].text.endswith(study)


def test_who_cannot_see_a_figure_is_told_its_numbers(captions, grades):
    is_full = (grades["decoder"] == "full") & (grades["decoding"] == "sampled")
    maths = grades[is_full & (grades["benchmark"] == "mini_maths")]
    told = captions["figure_3"].alternative
    assert f"mini maths: full {100 * maths['correct'].mean():.0f}, Mass 32 pruned" in told
    assert "REAP 32 slimwise" in told
    assert "distilled" not in told
    assert "16" not in told.replace("mini maths", "")


def test_ranges_are_of_every_pruned_decoder(captions, grades):
    tools = grades[(grades["benchmark"] == "mini_tools") & (grades["decoder"] != "full")]
    settings = tools.groupby(["decoder", "mode", "decoding"])["completion_tokens"]
    least, greatest = settings.median().min(), settings.median().max()
    told = captions["length_accuracy"].alternative
    assert told.endswith(f"others {least:.0f} to {greatest:.0f}.")


def test_a_full_decoder_alone_has_no_others(grades):
    origin = {"commit": "abc1234", "date": "2026-11-30", "hardware": "CPU"}
    lone = grades[(grades["decoder"] == "full") & (grades["decoding"] == "greedy")]
    accuracy = accuracy_table(lone.assign(**origin), backbone="mini", num_experts=64)
    captions = figure_captions(accuracy, lone)
    assert "others" not in captions["length_accuracy"].alternative
    assert captions["figure_3"].alternative == "Dot plots of accuracy in per cent. "
