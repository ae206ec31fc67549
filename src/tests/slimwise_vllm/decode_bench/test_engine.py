import json
import os
from pathlib import Path

import pytest

from slimwise.artifacts.keep_set import read_keep_set
from slimwise.errors import KeepSetError
from slimwise_vllm.decode_bench.engine import start_engine
from slimwise_vllm.decode_bench.plan import BenchPlan, EnginePlan

SHAPE = {"num_hidden_layers": 4, "num_experts": 16, "num_experts_per_tok": 2}


@pytest.fixture
def told(monkeypatch, tmp_path):
    """What vLLM is told, beside the environment, by an engine of 8 experts and that many kept."""

    def start(num_kept: int):
        (tmp_path / "config.json").write_text(json.dumps(SHAPE))
        engine = EnginePlan(name="small", num_experts=8, pools={"kept": num_kept}, rounds={1: 1})
        plan = BenchPlan(
            model_config_file=tmp_path / "config.json",
            num_experts=16,
            engines=(engine,),
            context_tokens=1000,
        )
        return start_engine(plan, engine, tmp_path).llm

    monkeypatch.setattr("vllm.LLM", lambda **told: (told, dict(os.environ)))
    monkeypatch.setattr(os, "environ", {"VLLM_TUNED_CONFIG_FOLDER": "/tuned"})
    return start


def test_an_engine_starts_on_the_kernels_that_vllm_has(told):
    _, environment = told(num_kept=4)
    assert environment["VLLM_PLUGINS"] == "slimwise"
    assert "VLLM_TUNED_CONFIG_FOLDER" not in environment


def test_pools_are_of_the_engines_experts(told):
    arguments, _ = told(num_kept=4)
    pools = arguments["additional_config"]["slimwise"]["pools"]
    keep_set = read_keep_set(Path(pools["kept"])).keep_set
    assert (keep_set.num_experts, keep_set.num_kept_per_layer) == (8, (4,) * 4)


@pytest.mark.parametrize("num_kept", [1, 9])
def test_a_pool_that_the_engine_cannot_have_is_refused(told, num_kept):
    with pytest.raises(KeepSetError, match=rf"pool of {num_kept} experts .* keep 2\.\.8"):
        told(num_kept)
