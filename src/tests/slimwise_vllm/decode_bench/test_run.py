"""The benchmark end to end on a tiny hybrid model of random weights."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

MODEL = {
    "architectures": ["Qwen3_5MoeForConditionalGeneration"],
    "model_type": "qwen3_5_moe",
    "dtype": "bfloat16",
    "text_config": {
        "model_type": "qwen3_5_moe_text",
        "dtype": "bfloat16",
        "vocab_size": 512,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "layer_types": ["linear_attention", "full_attention"],
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "linear_num_key_heads": 1,
        "linear_num_value_heads": 2,
        "linear_key_head_dim": 64,
        "linear_value_head_dim": 64,
        "num_experts": 32,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 32,
        "shared_expert_intermediate_size": 32,
        "max_position_embeddings": 4096,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.5,
            "mrope_interleaved": True,
            "mrope_section": [6, 5, 5],
        },
    },
    "vision_config": {"model_type": "qwen3_5_moe", "depth": 1, "deepstack_visual_indexes": []},
}
ARMS = [
    {},
    {"mode": "full"},
    {"mode": "slimwise", "pool": "m8"},
    {"mode": "full", "coverage": True},
    {"mode": "slimwise", "pool": "m8", "coverage": True},
]
PLAN = {
    "num_experts": 32,
    "context_tokens": 96,
    "block_steps": 3,
    "settle_steps": 2,
    "coverage_steps": 4,
    # So few that the first request would have ended before the last one began, were it not waited.
    "max_step_tokens": 64,
    "prefill_requests": 2,
    "prefill_repeats": 1,
    "skew_target_batch": 8,
    "skew_target_share": 0.5,
    "engine_options": {"enforce_eager": True, "kv_cache_memory_bytes": 1 << 27},
    "engines": [
        {
            "name": "pools",
            "num_experts": 32,
            "pools": {"m8": 8},
            "arms": ARMS,
            "rounds": {"1": 2, "8": 2},
        },
        {"name": "small", "num_experts": 8, "arms": [{}, {"tuned": True}], "rounds": {"8": 2}},
    ],
}
ENVIRONMENT = {
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "TORCHDYNAMO_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    root = tmp_path_factory.mktemp("bench")
    (root / "model.json").write_text(json.dumps(MODEL))
    plan = PLAN | {"model_config_file": str(root / "model.json"), "kernel_folder": str(root)}
    (root / "E=8,N=32,device_name=cpu.json").write_text(json.dumps({"8": {}}))
    (root / "plan.json").write_text(json.dumps(plan))
    command = [sys.executable, "-m", "slimwise_vllm.decode_bench.run", "--commit", "abc"]
    command += ["--plan", str(root / "plan.json"), "--out", str(root / "rows.jsonl")]
    outcome = subprocess.run(
        [*command, "--work", str(root / "work")],
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr[-3000:]
    return [json.loads(line) for line in (root / "rows.jsonl").read_text().splitlines()]


def found(rows, kind, **wanted):
    return [
        row
        for row in rows
        if row["kind"] == kind and all(row[key] == value for key, value in wanted.items())
    ]


def test_every_arm_is_timed_at_every_batch_and_routing(rows):
    timed = {
        (row["routing"], row["batch"], row["arm"]) for row in found(rows, "decode", engine="pools")
    }
    names = ["unhooked", "full", "slimwise-m8", "full+coverage", "slimwise-m8+coverage"]
    pools = {(r, b, arm) for r in ("uniform", "skewed") for b in (1, 8) for arm in names}
    assert timed == pools
    for row in found(rows, "decode"):
        assert row["batch_running"] == row["batch"]
        assert row["context_tokens"] == pytest.approx(96, abs=2)
        assert row["commit"] == "abc"
        assert ("overhead_ms" in row) == (row["engine"] == "pools" and row["arm"] != "unhooked")


def test_decode_tokens_stay_in_their_pool_and_prefill_does_not(rows):
    pruned = "slimwise-m8+coverage"
    decode = found(rows, "coverage", arm=pruned, phase="decode", batch=8)
    prefill = found(rows, "coverage", arm=pruned, phase="prefill")
    assert all(4 <= row["distinct_experts"] <= 8 for row in decode)
    assert all(row["distinct_experts"] > 8 for row in prefill)
    for row in found(rows, "coverage", batch=1):
        assert row["distinct_experts"] == 4


def test_the_skew_is_calibrated_once_and_holds_for_all_engines(rows):
    (calibration,) = found(rows, "calibration")
    assert calibration["pool_share_measured"] == pytest.approx(0.5, abs=0.08)
    shares = [
        found(rows, "coverage", arm="full+coverage", batch=8, routing=routing, phase="decode")[0]
        for routing in ("uniform", "skewed")
    ]
    assert shares[1]["pool_share_measured"] < shares[0]["pool_share_measured"] - 0.05
    assert found(rows, "decode", engine="small", routing="skewed")


def test_rows_name_the_kernels_that_ran(rows):
    assert {row["kernels"] for row in found(rows, "decode", engine="pools")} == {"default"}
    for kind in ("decode", "prefill"):
        small = found(rows, kind, engine="small")
        assert {row["kernels"] for row in small} == {"default", "tuned"}
