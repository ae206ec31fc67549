from pathlib import Path

import pytest
import yaml

from slimwise.config import StudyConfig, load_study, parse_slice, slice_json
from slimwise.core.vocabulary import DecoderId
from slimwise.errors import ConfigError
from slimwise.select.config import SelectionConfig

CONFIG = Path(__file__).resolve().parents[2] / "config"


def _smoke(**changes: dict) -> dict:
    raw = yaml.safe_load((CONFIG / "smoke.yaml").read_text())
    return {**raw, **{name: {**raw.get(name, {}), **change} for name, change in changes.items()}}


@pytest.mark.parametrize("overlay", sorted(CONFIG.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_overlay_is_a_study(overlay):
    if overlay.stem == "default":
        pytest.skip("the defaults alone name no study")
    assert load_study(yaml.safe_load(overlay.read_text())).decoders()[0].is_full


def test_a_slice_survives_the_command_line():
    study = load_study(_smoke())
    assert parse_slice(StudyConfig, slice_json(study)) == study


def test_one_decoders_slice_ignores_the_others():
    few = load_study(_smoke()).selection
    many = load_study(_smoke(selection={"num_kept": [32, 16]})).selection
    assert few.only("reap", 32) == many.only("reap", "32")
    assert isinstance(
        parse_slice(SelectionConfig, slice_json(few.only("reap", 32))).num_kept, tuple
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"selection": {"num_kpet": [8]}}, "selection.num_kpet = [8]: unknown key (did you mean"),
        ({"selection": {"num_kept": [0]}}, "selection.num_kept.0 = 0: Input should be greater"),
        ({"selection": {"criteria": ["best"]}}, "selection.criteria.0 = 'best'"),
        ({"serving": {"gpu_memory_share": 1.5}}, "less than or equal to 1"),
        ({"backbone": {"accuracy_floors": {"gsm8k": 0.5}}}, "accuracy_floors names gsm8k"),
        ({"evaluation": {"greedy": False}}, "set evaluation.greedy"),
        ({"evaluation": {"budget_tokens": 640}}, "serving.max_model_len_tokens = 640"),
        ({"evaluation": {"floor_items": 3}}, "floor_items = 3 is below evaluation.num_items = 4"),
        (
            {"evaluation": {"colocated_num_kept": {"slimwise": [16]}}},
            "colocated_num_kept.slimwise names 16, which selection.num_kept (32) does not",
        ),
        ({"evaluation": {"colocated_num_kept": {"full": [32]}}}, "Input should be"),
        (
            {"calibration": {"gpus_per_model": 4}, "resources": {"gpus": 2}},
            "calibration.gpus_per_model = 4 is above resources.gpus = 2",
        ),
        (
            {"disaggregation": {"decode_urls": ["10.0.0.2:8100"]}},
            "disaggregation.decode_urls.0 = '10.0.0.2:8100': String should match pattern '^http",
        ),
        (
            {"disaggregation": {"decode_urls": ["http://10.0.0.2:8100"], "decode_port": 8100}},
            "disaggregation: decode_urls are of servers that run elsewhere, which decode_port",
        ),
        ({"distillation": {"decoders": ["reap-m32-kd_zero"]}}, "both say what is distilled"),
        (
            {"distillation": {"rules": [], "decoders": ["reap-m16-kd_zero"]}},
            "distillation.decoders names reap-m16-kd_zero, which is no distilled decoder",
        ),
        ({"distillation": {"rules": [], "decoders": ["reap-m32"]}}, "names reap-m32, which is no"),
        (
            {"evaluation": {"disaggregated_decoders": ["reap-m16"]}},
            "disaggregated_decoders names reap-m16, which is none of the study's pruned decoders: "
            "reap-m32",
        ),
        ({"selection": {"num_kept": [32, 16, 32]}}, "selection: num_kept names 32 twice"),
        ({"evaluation": {"distilled_modes": ["pruned"] * 2}}, "distilled_modes names pruned twice"),
        (
            {"evaluation": {"benchmarks": ["mini_maths", "mini_cod"]}},
            "evaluation.benchmarks: 'mini_cod' is not a benchmark; did you mean mini_code",
        ),
        (
            {
                "backbone": {"accuracy_floors": {}},
                "evaluation": {"greedy": False, "sampled_runs": 0},
            },
            "evaluation asks nothing: set greedy, or sampled_runs to 1 or more",
        ),
        (
            {"backbone": {"accuracy_floors": {"mini_maths": 98}}},
            "accuracy_floors.mini_maths = 98: Input should be less than or equal to 1",
        ),
        (
            {"throughput": {"decoders": ["full", "rea-m32"]}},
            "throughput.decoders: decoder 'rea-m32'",
        ),
        (
            {"throughput": {"decoders": ["reap-m32"]}},
            "throughput.decoders (reap-m32) lacks full, which others are compared with",
        ),
        (
            {"distillation": {"rules": [], "decoders": ["reap-m32-kd_one"]}},
            "distillation.decoders: decoder 'reap-m32-kd_one': split rule 'one'",
        ),
    ],
)
def test_a_refusal_names_key_value_and_limit(changes, reason):
    with pytest.raises(ConfigError) as refusal:
        load_study(_smoke(**changes))
    assert reason in str(refusal.value)


def test_words_of_a_command_line_may_be_repeated():
    arguments = ["--override", "a", "--override", "b"]
    assert len(load_study(_smoke(serving={"extra_args": arguments})).serving.extra_args) == 4


def test_a_missing_key_is_named_without_the_rest_of_the_input():
    raw = _smoke()
    del raw["backbone"]["name"]
    with pytest.raises(ConfigError) as refusal:
        load_study(raw)
    assert "backbone.name is required and has no default" in str(refusal.value)
    assert "embedded" not in str(refusal.value)


def test_every_pruned_decoder_is_distilled_by_every_rule_unless_some_are_named():
    assert load_study(_smoke(distillation={"rules": []})).distilled_decoders() == ()
    several = {"criteria": ["ean", "reap"], "num_kept": [32, 16]}
    study = load_study(_smoke(selection=several, distillation={"rules": ["uniform", "zero"]}))
    assert len(study.distilled_decoders()) == 8
    chosen = {"rules": ["zero"], "criteria": ["reap"], "num_kept": [16]}
    study = load_study(_smoke(selection=several, distillation=chosen))
    assert [str(decoder) for decoder in study.distilled_decoders()] == ["reap-m16-kd_zero"]


def test_arms_follow_from_the_configuration():
    several = {"criteria": ["ean", "reap"], "num_kept": [32, 16]}
    study = load_study(
        _smoke(
            selection=several,
            distillation={"rules": ["zero"], "criteria": ["reap"]},
            evaluation={
                "colocated_num_kept": {"slimwise": [32, 16], "reverse": [32]},
                "distilled_modes": ["pruned", "slimwise"],
            },
        )
    )
    distilled = ["reap-m32-kd_zero", "reap-m16-kd_zero"]
    pruned = ["ean-m32", "ean-m16", "reap-m32", "reap-m16"]
    assert list(map(str, study.standalone_decoders())) == ["full", *pruned, *distilled]
    assert list(map(str, study.colocated_decoders())) == [*pruned, *distilled]
    modes = {
        str(each): study.evaluation.colocated_modes(each)
        for each in (DecoderId(), *study.colocated_decoders())
    }
    assert modes["full"] == ()
    assert modes["ean-m32"] == ("slimwise", "reverse")
    assert modes["ean-m16"] == modes["reap-m16-kd_zero"] == ("slimwise",)


def test_a_study_without_further_modes_asks_only_standalone_decoders():
    study = load_study(_smoke(evaluation={"colocated_num_kept": {}}, distillation={"rules": []}))
    assert list(map(str, study.standalone_decoders())) == ["full", "reap-m32"]
    assert study.colocated_decoders() == ()


def test_the_questions_of_one_server_do_not_depend_on_other_arms():
    selection = {"num_kept": [32, 16]}
    asked = {"colocated_num_kept": {"slimwise": [32]}, "distilled_modes": ["slimwise"]}
    more = {"colocated_num_kept": {"slimwise": [32, 16], "reverse": [16]}, "floor_items": 9}
    few, many = (
        load_study(_smoke(selection=selection, evaluation=asked | changes)).evaluation
        for changes in ({}, more)
    )
    for decoder in ("reap-m32", "reap-m32-kd_zero"):
        for colocated in (True, False):
            only = [each.only(decoder, colocated=colocated) for each in (few, many)]
            assert only[0] == only[1]
    assert few.only("full", colocated=False) != many.only("full", colocated=False)
    assert few.only("reap-m32", colocated=True).colocated_modes(DecoderId.parse("reap-m32"))


def test_distillation_of_a_decoder_that_is_not_selected_is_refused():
    chosen = {"rules": ["zero"], "num_kept": [16]}
    with pytest.raises(ConfigError, match=r"distillation\.num_kept names 16, which selection"):
        load_study(_smoke(distillation=chosen))


def test_a_decoder_with_phases_apart_has_a_slice_of_its_own():
    asked = {"disaggregated_decoders": ["reap-m32-kd_uniform", "reap-m32"]}
    study = load_study(_smoke(evaluation=asked))
    named = [str(decoder) for decoder in study.disaggregated_decoders()]
    assert named == asked["disaggregated_decoders"]
    slices = [study.evaluation.only(name, disaggregated=True) for name in named]
    assert [each.disaggregated_decoders for each in slices] == [(name,) for name in named]
    assert study.evaluation.only("reap-m32").disaggregated_decoders == ()
