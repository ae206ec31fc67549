import json
import os

from slimwise_vllm.decode_bench.engine import start_engine
from slimwise_vllm.decode_bench.plan import BenchPlan, EnginePlan

SHAPE = {"num_hidden_layers": 4, "num_experts": 16, "num_experts_per_tok": 2}


def test_an_engine_starts_on_the_kernels_that_vllm_has(monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(SHAPE))
    engine = EnginePlan(name="small", num_experts=8, rounds={1: 1})
    plan = BenchPlan(
        model_config_file=tmp_path / "config.json",
        num_experts=16,
        engines=(engine,),
        context_tokens=1000,
    )
    monkeypatch.setattr("vllm.LLM", lambda **_: "VLLM_TUNED_CONFIG_FOLDER" in os.environ)
    monkeypatch.setattr(os, "environ", {"VLLM_TUNED_CONFIG_FOLDER": "/tuned"})
    assert start_engine(plan, engine, tmp_path).llm is False
