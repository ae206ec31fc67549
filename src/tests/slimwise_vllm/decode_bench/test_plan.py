from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from slimwise.core.vocabulary import ServingMode
from slimwise.paths import MEASUREMENT_SETTINGS
from slimwise_vllm.decode_bench.plan import Arm, BenchPlan, EnginePlan
from slimwise_vllm.request_pools import PhasePools

SLIMWISE = Arm(mode=ServingMode.SLIMWISE, pool="m8")


def test_arms_are_named_by_what_they_do():
    counted = Arm(mode=ServingMode.FULL, coverage=True)
    names = [arm.name for arm in (Arm(), counted, SLIMWISE)]
    assert names == ["unhooked", "full+coverage", "slimwise-m8"]


def test_an_arm_prunes_the_phases_of_its_mode():
    names = ["m4", "m8"]
    assert SLIMWISE.pools(names) == PhasePools(0, 2)
    assert Arm(mode=ServingMode.PRUNED, pool="m4").pools(names) == PhasePools(1, 1)
    assert Arm(mode=ServingMode.FULL).pools(names) == PhasePools(0, 0)


@pytest.mark.parametrize(
    ("arm", "message"),
    [
        ({"mode": "slimwise"}, "needs a pool"),
        ({"mode": "full", "pool": "m8"}, "takes no pool"),
        ({"coverage": True}, "needs a mode"),
    ],
)
def test_an_arm_that_means_nothing_is_refused(arm, message):
    with pytest.raises(ValidationError, match=message):
        Arm.model_validate(arm)


def test_an_engine_needs_the_pools_of_its_arms():
    with pytest.raises(ValidationError, match="'m8' is not one of the pools"):
        EnginePlan(name="e", num_experts=16, pools={"m4": 4}, arms=(SLIMWISE,), rounds={1: 1})
    with pytest.raises(ValidationError, match="needs at least one pool"):
        EnginePlan(name="e", num_experts=16, arms=(Arm(mode=ServingMode.FULL),), rounds={1: 1})


def test_an_arm_is_timed_once():
    with pytest.raises(ValidationError, match="unhooked is given twice"):
        EnginePlan(name="e", num_experts=16, arms=(Arm(), Arm()), rounds={1: 1})


def _plan(*engines: EnginePlan, **settings: Any) -> BenchPlan:
    return BenchPlan(
        model_config_file=Path("config.json"),
        num_experts=16,
        engines=engines,
        block_steps=8,
        settle_steps=2,
        **settings,
    )


def test_prompts_are_shorter_by_half_of_the_steps():
    pools = {"m8": 8}
    engine = EnginePlan(
        name="e", num_experts=16, pools=pools, arms=(Arm(), SLIMWISE), rounds={4: 3}
    )
    plan = _plan(engine, context_tokens=1000)
    assert plan.timed_steps(engine, 4) == 3 * 2 * 10
    assert plan.admission_steps(4) == 1
    assert plan.prompt_tokens(engine, 4) == 1000 - 30


@pytest.mark.parametrize("name", ["decode_steps", "tuned_decode", "long_context"])
def test_committed_plans_are_valid(name):
    BenchPlan.model_validate_json((MEASUREMENT_SETTINGS / f"{name}.json").read_text())


ENGINE = EnginePlan(name="e", num_experts=16, rounds={4: 3})
TUNED = EnginePlan(name="tuned", num_experts=16, arms=(Arm(tuned=True),), rounds={1: 1})


@pytest.mark.parametrize(
    ("engines", "settings", "message"),
    [
        ([ENGINE], {"context_tokens": 15}, "batch 4: context_tokens=15 is the mean over 30 steps"),
        ([ENGINE], {"max_step_tokens": 4}, "max_step_tokens=4 leaves no room"),
        ([ENGINE, ENGINE], {}, "engines e, e: give each a name"),
        ([TUNED], {}, "engine tuned has a tuned arm: set kernel_folder"),
    ],
)
def test_what_could_not_be_measured_is_refused_before_an_engine_starts(engines, settings, message):
    with pytest.raises(ValidationError, match=message):
        _plan(*engines, **{"context_tokens": 1000, **settings})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"context_tokens": 1280}, (6, 1280)),
        ({"context_tokens": 131072}, (1, 8192)),
        ({"context_tokens": 1280, "max_step_tokens": 1000}, (1, 1000)),
        ({"context_tokens": 64, "prefill_requests": 32}, (32, 64)),
    ],
)
def test_experts_of_prefill_are_counted_in_one_step_whatever_the_context(settings, expected):
    assert _plan(ENGINE, **settings).prefill_step() == expected


def test_steps_that_read_later_prompts_are_counted():
    engine = EnginePlan(name="e", num_experts=16, rounds={128: 1})
    plan = _plan(engine, context_tokens=5120, max_step_tokens=16384 + 128)
    assert plan.admission_steps(128) == 40
