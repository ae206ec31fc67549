"""Two spawned workers share a model, and agree on pools and answers."""

import json
import os
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import json, sys
import vllm

if __name__ == "__main__":
    options, prompts, modes = json.loads(sys.argv[1])
    engine = vllm.LLM(**options)
    answers = {}
    for mode in modes:
        parameters = vllm.SamplingParams(
            temperature=0,
            max_tokens=12,
            detokenize=False,
            ignore_eos=True,
            extra_args={"slimwise_mode": mode},
        )
        inputs = [{"prompt_token_ids": prompt} for prompt in prompts]
        outputs = engine.generate(inputs, parameters, use_tqdm=False)
        answers[mode] = [list(output.outputs[0].token_ids) for output in outputs]
    print("ANSWERS", json.dumps(answers))
"""
ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_LOGGING_LEVEL": "INFO",
    "OMP_NUM_THREADS": "1",
}


# vLLM's CPU kernels ignore the expert map, so they cannot share experts out.
@pytest.mark.parametrize("expert_parallel", [False, pytest.param(True, marks=pytest.mark.gpu)])
def test_two_workers_answer_like_one(
    tiny_backbone, start_engine, ask, sampling, prompts, tmp_path, expert_parallel
):
    backbone = tiny_backbone("qwen3_moe")
    options = {
        "dtype": "float32",
        "additional_config": backbone.additional_config(check_routing=True),
    }
    alone = start_engine(backbone.folder, **options)
    expected = {
        mode: [turn.answer for turn in ask(alone, prompts, sampling(mode=mode))]
        for mode in ("full", "slimwise")
    }
    options |= {
        "model": str(backbone.folder),
        "tensor_parallel_size": 2,
        "enable_expert_parallel": expert_parallel,
        "skip_tokenizer_init": True,
        "enforce_eager": True,
        "max_model_len": 256,
        "max_num_seqs": 16,
        "kv_cache_memory_bytes": 1 << 26,
    }
    script = tmp_path / "two_workers.py"
    script.write_text(SCRIPT)
    outcome = subprocess.run(
        [sys.executable, str(script), json.dumps([options, prompts, list(expected)])],
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    output = outcome.stdout + outcome.stderr
    (answers,) = re.findall(r"ANSWERS (.*)", output) or pytest.fail(output[-3000:])
    assert json.loads(answers) == expected
    digests = dict(re.findall(r"rank (\d): pool half of .* digest (\w+)", output))
    assert set(digests) == {"0", "1"}
    assert len(set(digests.values())) == 1
