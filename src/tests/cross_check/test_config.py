from pathlib import Path

import pytest
import yaml

from slimwise.config import load_study
from slimwise.errors import ConfigError

OVERLAY = Path(__file__).resolve().parents[3] / "config" / "gsm8k_mini.yaml"


@pytest.mark.parametrize(
    ("slice_name", "change", "message"),
    [
        ("cross_check", {"benchmarks": ["math_500"]}, r"names math_500, of which .* no greedy"),
        ("cross_check", {"benchmarks": ["mbpp_plus"]}, r"cross_check\.benchmarks\.0"),
        ("cross_check", {"num_items": 7}, r"num_items = 7 is above .* of gsm8k, 6"),
        ("evaluation", {"num_items_of": {"gsm8k": 3}}, r"num_items = 4 is above .* of gsm8k, 3"),
        ("evaluation", {"greedy": False}, r"names gsm8k, of which .* set evaluation\.greedy"),
        ("evaluation", {"num_shots": {"gsmk": 1}}, r"num_shots names gsmk, which .* does not"),
        ("evaluation", {"num_shots": {"gsm8k": -1}}, r"num_shots\.gsm8k = -1"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_runs(slice_name, change, message):
    raw = yaml.safe_load(OVERLAY.read_text())
    with pytest.raises(ConfigError, match=message):
        load_study({**raw, slice_name: {**raw[slice_name], **change}})


def test_a_benchmark_with_more_items_than_others_may_be_checked_on_more():
    raw = yaml.safe_load(OVERLAY.read_text())
    evaluation = raw["evaluation"] | {"num_items_of": {"gsm8k": 9}}
    checked = raw["cross_check"] | {"num_items": 9}
    study = load_study({**raw, "evaluation": evaluation, "cross_check": checked})
    assert study.cross_check.num_items == 9
