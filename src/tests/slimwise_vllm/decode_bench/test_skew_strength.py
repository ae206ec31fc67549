import json

import pytest

from slimwise.core.vocabulary import Routing, ServingMode
from slimwise.errors import ConfigError
from slimwise_vllm.decode_bench.plan import Arm, BenchPlan, EnginePlan
from slimwise_vllm.decode_bench.skew_strength import skew_strength

COUNTING = EnginePlan(
    name="pools",
    num_experts=16,
    pools={"m8": 8},
    arms=(Arm(mode=ServingMode.FULL, coverage=True),),
    rounds={1: 1},
)
SMALL = EnginePlan(name="small", num_experts=8, rounds={1: 1})
SHAPE = {"num_hidden_layers": 4, "num_experts": 16, "num_experts_per_tok": 2}
ENGINE = {"kind": "engine", "engine": "pools", "num_experts": 16, "num_layers": 4, "top_k": 2}
CALIBRATION = {
    "kind": "calibration",
    "engine": "pools",
    "num_experts": 16,
    "batch": 64,
    "pool_share_target": 0.75,
    "skew_strength": 0.2,
}


@pytest.fixture
def strength(tmp_path):
    """What an engine is skewed by after the rows; settings are the plan's."""

    def found(engine: EnginePlan, *rows: dict, **settings):
        (tmp_path / "config.json").write_text(json.dumps(SHAPE))
        (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        plan = BenchPlan(
            model_config_file=tmp_path / "config.json",
            num_experts=16,
            engines=(COUNTING, SMALL),
            context_tokens=1000,
            **settings,
        )
        return skew_strength(plan, engine, tmp_path / "rows.jsonl")

    return found


def test_all_engines_share_what_the_plan_says_or_the_first_one_found(strength):
    assert strength(SMALL, ENGINE, CALIBRATION, skew_strength=0.0) == 0
    assert strength(SMALL, ENGINE, CALIBRATION) == 0.2
    assert strength(COUNTING, ENGINE, CALIBRATION) == 0.2
    assert strength(COUNTING) is None


@pytest.mark.parametrize(
    "other",
    [{"batch": 32}, {"pool_share_target": 0.6}, {"num_experts": 32}, {"engine": "m16"}],
)
def test_a_strength_for_another_target_or_engine_is_not_taken(strength, other):
    rows = [ENGINE, ENGINE | {"engine": "m16"}, CALIBRATION | other]
    assert strength(COUNTING, *rows) is None
    fitting = CALIBRATION | {"skew_strength": 0.3}
    assert strength(COUNTING, *rows, ENGINE, fitting) == 0.3


@pytest.mark.parametrize("other", [{"top_k": 8}, {"num_layers": 40}])
def test_a_strength_of_another_model_is_not_taken(strength, other):
    with pytest.raises(ConfigError, match=r"small needs a skew strength, and .*rows\.jsonl has no"):
        strength(SMALL, ENGINE | other, CALIBRATION)


def test_uniform_routing_needs_no_strength(strength):
    assert strength(SMALL.model_copy(update={"routings": (Routing.UNIFORM,)})) is None
