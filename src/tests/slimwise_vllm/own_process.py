"""An engine in a process of its own, for what would change the process of other tests."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

_SCRIPT = """
import json, sys
import vllm

if __name__ == "__main__":
    options, prompts, modes, sampling = json.loads(sys.argv[1])
    engine = vllm.LLM(**options)
    answers = {}
    for mode in modes:
        parameters = vllm.SamplingParams(
            temperature=0,
            detokenize=False,
            ignore_eos=True,
            extra_args={"slimwise_mode": mode},
            **sampling,
        )
        inputs = [{"prompt_token_ids": prompt} for prompt in prompts]
        outputs = engine.generate(inputs, parameters, use_tqdm=False)
        answers[mode] = [list(output.outputs[0].token_ids) for output in outputs]
    metrics = engine.get_metrics() if not options.get("disable_log_stats", True) else []
    values = {metric.name: getattr(metric, "value", None) for metric in metrics}
    print("ANSWERS", json.dumps([answers, values]))
"""
_OPTIONS = {
    "skip_tokenizer_init": True,
    "enforce_eager": True,
    "max_model_len": 256,
    "max_num_seqs": 16,
    "kv_cache_memory_bytes": 1 << 26,
}


def answers_of_own_process(
    folder: Path,
    prompts: Sequence[Sequence[int]],
    modes: Sequence[str],
    *,
    environment: Mapping[str, str],
    scratch: Path,
    sampling: Mapping[str, Any],
    **options: Any,
) -> tuple[dict[str, list[list[int]]], dict[str, Any], str]:
    """Greedy answers by mode, the engine's metrics, and all that the process wrote."""
    script = scratch / "engine.py"
    script.write_text(_SCRIPT)
    arguments = [{"model": str(folder), **_OPTIONS, **options}, prompts, modes, sampling]
    outcome = subprocess.run(
        [sys.executable, str(script), json.dumps(arguments)],
        env=os.environ | {"OMP_NUM_THREADS": "1"} | dict(environment),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    output = outcome.stdout + outcome.stderr
    (found,) = re.findall(r"ANSWERS (.*)", output) or pytest.fail(output[-3000:])
    answers, metrics = json.loads(found)
    return answers, metrics, output
