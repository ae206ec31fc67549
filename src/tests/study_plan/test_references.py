import json
from pathlib import Path

import pytest

from slimwise.benchmarks.code import human_eval, mbpp
from slimwise.benchmarks.maths import gsm8k, math_500
from slimwise.study_plan.references import answer_lengths, decode_speed, speed_of, speeds

ROOT = Path(__file__).resolve().parents[3]


def _measured(source: str) -> set[float]:
    rows = map(json.loads, (ROOT / source).read_text().splitlines())
    found = (row.get("tokens_per_s") or row.get("tokens_per_s_per_gpu") or 0.0 for row in rows)
    return {round(value, 1) for value in found}


@pytest.mark.parametrize("source", sorted({speed.source for speed in speeds()}))
def test_every_speed_is_in_the_file_that_it_names(source):
    assert {speed.tokens_per_s for speed in speeds() if speed.source == source} <= _measured(source)


def test_a_shape_without_a_measurement_borrows_one():
    found = {quantity: speed_of(quantity, "gemma4_26b_a4b") for quantity in ("score", "flight")}
    assert found["score"] is not None
    assert found["score"].shape == "gemma4_26b_a4b"
    assert found["flight"] is None
    borrowed = speed_of("score", "another_shape")
    assert borrowed is not None
    assert borrowed.tokens_per_s > 0


def test_decoding_is_rather_too_slow():
    exact, between = decode_speed(0.5, 128), decode_speed(0.4, 200)
    assert (exact.kept_share, exact.batch) == (0.5, 128)
    assert between == exact
    assert decode_speed(0.6, 8).batch == 64
    assert decode_speed(1.0, 128).tokens_per_s < exact.tokens_per_s


def test_the_mean_of_lengths_lies_between_their_percentiles():
    length = answer_lengths()["math_500"]
    # exp(mu + sigma^2 / 2) with mu = ln 2400 and sigma = ln(6100 / 2400) / 1.2816.
    assert length.mean_tokens == pytest.approx(3127.8, abs=1)


def test_benchmarks_have_as_many_items_as_their_data():
    sources = {
        "gsm8k": gsm8k,
        "math_500": math_500,
        "humaneval_plus": human_eval,
        "mbpp_plus": mbpp,
    }
    for name, module in sources.items():
        assert answer_lengths()[name].num_items == module.TEST.num_rows
