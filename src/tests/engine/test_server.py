"""The environment as a whole: model classes import, and real servers start, answer and end."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slimwise.backbones.mini.chat import messages
from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.backbones.mini.tasks.split import Split, draw_items
from slimwise.engine.chat import ChatAnswer, ChatRequest
from slimwise.engine.client import AskingLimits, ask_all
from slimwise.engine.config import ServingConfig
from slimwise.engine.deployment import serve
from slimwise.generate.chat_prompt import prompt_lengths
from slimwise.paths import EMBEDDED_CHECKPOINT

pytestmark = pytest.mark.slow

SERVING = ServingConfig(
    max_model_len_tokens=640, max_num_seqs=64, kv_cache_gib=0.25, cpu_threads=1, enforce_eager=True
)

RANDOM_MODEL = {
    "vocab_size": 512,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "intermediate_size": 64,
    "moe_intermediate_size": 32,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "max_position_embeddings": 640,
    "eos_token_id": 2,
}


def mini_requests(temperature: float, max_tokens: int = 24) -> list[ChatRequest]:
    items = [item for each in GRADED.values() for item in draw_items(each, 30, 0, Split.TEST)]
    return [
        ChatRequest(messages(item), item.tools, temperature, 0.95, max_tokens, seed)
        for seed, item in enumerate(items)
    ]


def ask(base_url: str, requests: list[ChatRequest]) -> list[ChatAnswer]:
    answers: dict[int, ChatAnswer] = {}
    asyncio.run(ask_all(base_url, requests, answers.__setitem__, AskingLimits(64, 120, 5)))
    return [answers[index] for index in range(len(requests))]


@pytest.fixture(scope="module")
def mini_url(tmp_path_factory):
    with serve(EMBEDDED_CHECKPOINT, SERVING, tmp_path_factory.mktemp("mini") / "log") as url:
        yield url


def test_every_model_class_imports():
    from transformers import Gemma4ForCausalLM, Qwen3_5MoeForCausalLM, Qwen3MoeForCausalLM

    assert Gemma4ForCausalLM
    assert Qwen3MoeForCausalLM
    assert Qwen3_5MoeForCausalLM


def test_the_server_counts_prompts_as_we_do(mini_url):
    requests = mini_requests(0.0, max_tokens=1)
    lengths = [answer.prompt_tokens for answer in ask(mini_url, requests)]
    assert lengths == prompt_lengths(requests, EMBEDDED_CHECKPOINT)


def test_sampled_requests_repeat_with_their_seed(mini_url):
    # Only the first tokens: bf16 sums depend on what else is in the batch.
    requests = mini_requests(1.0, max_tokens=2)
    first, second = ask(mini_url, requests), ask(mini_url, requests)
    same = sum(a.content == b.content for a, b in zip(first, second, strict=True))
    assert same >= 0.9 * len(requests)


def test_a_batch_of_prompts_longer_than_one_step_is_answered(mini_url):
    filler = "How many stamps does Ada have now? " * 12
    requests = [
        ChatRequest([{"role": "user", "content": f"{n} {filler}"}], (), 1.0, 0.95, 4, n)
        for n in range(64)
    ]
    assert len(ask(mini_url, requests)) == len(requests)


def test_the_budget_is_a_finish_reason(mini_url):
    (answer,) = ask(mini_url, mini_requests(0.0, max_tokens=3)[:1])
    assert answer.finish_reason == "length"
    assert answer.completion_tokens == 3


def test_a_random_qwen3_moe_is_served(tmp_path):
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model("qwen3_moe", **RANDOM_MODEL)
    model = tmp_path / "random"
    AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(model)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(EMBEDDED_CHECKPOINT / name, model)
    with serve(model, SERVING, tmp_path / "log") as url:
        answers = ask(url, mini_requests(1.0))
    assert all(answer.completion_tokens > 0 for answer in answers)


def test_a_killed_parent_takes_its_server_along(tmp_path):
    source = f"""
import time
from pathlib import Path
from slimwise.engine.config import ServingConfig
from slimwise.engine.deployment import serve
config = ServingConfig.model_validate_json({SERVING.model_dump_json()!r})
with serve(Path({str(EMBEDDED_CHECKPOINT)!r}), config, Path({str(tmp_path / "log")!r})):
    print("healthy", flush=True)
    time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "healthy\n"
    members = descendants(parent.pid)
    assert len(members) >= 2
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{member}").exists() for member in members):
        assert time.monotonic() < deadline, "part of the server outlives its parent"
        time.sleep(0.1)


def descendants(process: int) -> set[int]:
    children_file = Path(f"/proc/{process}/task/{process}/children")
    children = {int(child) for child in children_file.read_text().split()}
    return children.union(*(descendants(child) for child in children))
