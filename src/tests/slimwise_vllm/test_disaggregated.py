"""Prefill and decode by a server each, through NIXL, against transformers alone; and under kills.

A hand-off is exact, so answers are compared token for token.
"""

import asyncio
import os
import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from slimwise.artifacts.manifest import MANIFEST_NAME
from slimwise.engine.command import SERVED_NAME
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.decode_audit import decode_counts
from slimwise.engine.deployment import RunningDeployment, ServedModel, serve_disaggregated
from slimwise.engine.process import run_servers
from slimwise.paths import EMBEDDED_CHECKPOINT

pytestmark = [pytest.mark.slow, pytest.mark.proof]

SERVING = ServingConfig(
    dtype="float32", max_model_len_tokens=256, max_num_seqs=16, kv_cache_gib=0.125, cpu_threads=1
)
NUM_TOKENS = 24
BLOCK_TOKENS = 128
ANSWER_TIMEOUT_S = 60


@contextmanager
def apart(
    full: Path, pruned: Path, folder: Path, serving: ServingConfig = SERVING, **settings: Any
):
    """A deployment of two tiny models, which have no tokenizer of their own."""
    prefill = with_tokenizer(full, folder / "models" / "prefill")
    decode = with_tokenizer(pruned, folder / "models" / "decode")
    layout = DisaggregationConfig(**settings)
    with serve_disaggregated(prefill, decode, serving, layout, folder) as deployment:
        yield deployment


def with_tokenizer(model: Path, copy: Path) -> ServedModel:
    # With a tokenizer it is no longer what the export's manifest says.
    shutil.copytree(model, copy, ignore=shutil.ignore_patterns(MANIFEST_NAME))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(EMBEDDED_CHECKPOINT / name, copy)
    return ServedModel(copy)


async def _complete(session: aiohttp.ClientSession, prompt: Sequence[int]) -> Any:
    body = {
        "model": SERVED_NAME,
        "prompt": list(prompt),
        "max_tokens": NUM_TOKENS,
        "temperature": 0,
        "ignore_eos": True,
        "logprobs": 0,
        "return_tokens_as_token_ids": True,
    }
    try:
        async with session.post("/v1/completions", json=body) as reply:
            if reply.status != 200:
                return f"status {reply.status}: {await reply.text()}"
            found = await reply.json()
    except aiohttp.ClientError as failure:
        return f"connection: {failure!r}"
    scored = found["choices"][0]["logprobs"]
    assert found["usage"]["completion_tokens"] == len(scored["tokens"])
    return [int(token.removeprefix("token_id:")) for token in scored["tokens"]]


async def _complete_all(url: str, prompts: Sequence[Sequence[int]]) -> list[Any]:
    timeout = aiohttp.ClientTimeout(total=ANSWER_TIMEOUT_S)
    async with aiohttp.ClientSession(url, timeout=timeout) as session:
        return await asyncio.gather(*(_complete(session, prompt) for prompt in prompts))


def complete(url: str, prompts: Sequence[Sequence[int]]) -> list[Any]:
    """The tokens of each answer, all asked at once, or what the client was told instead."""
    return asyncio.run(_complete_all(url, prompts))


@pytest.mark.parametrize("family", ["qwen3_moe", "gemma4"])
def test_answers_are_those_of_a_full_prefill_and_a_pruned_rest(
    family, tiny_backbone, prompts, hf_models, greedy_reference, tmp_path
):
    backbone = tiny_backbone(family)
    full, pruned = hf_models(family)
    lengths = (15, 16, 17, 31, 32, 33)
    asked = [*prompts, *([7 + n % 200 for n in range(length)] for length in lengths)]
    with apart(backbone.folder, backbone.pruned_folder, tmp_path) as deployment:
        answers = complete(deployment.base_url, asked)
        counts = decode_counts(deployment.prefill_urls, deployment.decode_urls)
    assert answers == [greedy_reference(full, pruned, prompt, NUM_TOKENS) for prompt in asked]
    # Else the comparison above could not tell the modes apart.
    assert answers != [greedy_reference(full, full, prompt, NUM_TOKENS) for prompt in asked]
    assert answers != [greedy_reference(pruned, pruned, prompt, NUM_TOKENS) for prompt in asked]
    assert counts.num_requests == len(asked)
    assert counts.received_prompt_tokens >= sum(map(len, asked)) - len(asked)
    assert not counts.faults()


def test_a_distilled_decoder_answers_like_one_server_that_holds_it_as_a_pool(
    distilled_backbone, prompts, start_engine, sampling, ask, tmp_path
):
    """In float32 to the token, though one has a wider shared expert and the other two of them."""
    distilled = distilled_backbone("gemma4")
    full = distilled.backbone.folder
    with apart(full, distilled.merged_folder, tmp_path) as deployment:
        answers = complete(deployment.base_url, prompts)
        counts = decode_counts(deployment.prefill_urls, deployment.decode_urls)
    engine = start_engine(full, dtype="float32", additional_config=distilled.additional_config())

    def together(**choice: str) -> list[list[int]]:
        return [turn.answer for turn in ask(engine, prompts, sampling(NUM_TOKENS, **choice))]

    assert answers == together(mode="slimwise", pool="kd")
    assert answers != together(mode="slimwise", pool="half")
    assert answers != together(mode="pruned", pool="kd")
    assert not counts.faults()


def test_a_hybrid_in_bfloat16_answers_like_an_engine_that_splits_the_prompt_there(
    tiny_backbone, prompts, start_engine, sampling, ask, tmp_path
):
    """One server differs by a kernel only: it passes all of the prompt through the chunked one."""
    pruned = tiny_backbone("qwen3_5_moe").pruned_folder
    serving = SERVING.model_copy(update={"dtype": "bfloat16"})
    with apart(pruned, pruned, tmp_path, serving) as deployment:
        # One at a time: in bfloat16 a batch's size decides near ties.
        answers = [complete(deployment.base_url, [prompt])[0] for prompt in prompts]
    engine = start_engine(pruned, dtype="bfloat16", enable_chunked_prefill=True)
    scheduler = engine.llm_engine.engine_core.engine_core.scheduler
    for prompt, answer in zip(prompts, answers, strict=True):
        scheduler.max_num_scheduled_tokens = max(len(prompt) - 1, 1)
        (turn,) = ask(engine, [prompt], sampling(NUM_TOKENS))
        assert answer == turn.answer


def test_preemptions_make_a_run_invalid(tiny_backbone, tmp_path):
    backbone = tiny_backbone("qwen3_moe")
    models = backbone.folder, backbone.pruned_folder
    prompt_tokens = BLOCK_TOKENS - NUM_TOKENS // 2
    prompts = [[7 + (n + seed) % 200 for n in range(prompt_tokens)] for seed in range(4)]
    # Each request outgrows its block; of the six, vLLM keeps one for itself.
    blocks = ("--block-size", str(BLOCK_TOKENS), "--num-gpu-blocks-override", "6")
    layout = {"decode_args": blocks, "prefill_args": blocks[:2]}
    with apart(*models, tmp_path, **layout) as deployment:
        answers = complete(deployment.base_url, prompts)
        counts = decode_counts(deployment.prefill_urls, deployment.decode_urls)
    assert all(isinstance(answer, list) for answer in answers)
    assert counts.num_preemptions
    assert any("preemptions" in fault for fault in counts.faults())


@pytest.fixture(scope="module")
def deployment(tiny_backbone, tmp_path_factory):
    backbone = tiny_backbone("qwen3_moe")
    folder = tmp_path_factory.mktemp("killed")
    with apart(backbone.folder, backbone.pruned_folder, folder) as running:
        yield running


@pytest.fixture(scope="module")
def revived(deployment):
    """Holds the servers that took the place of killed ones."""
    with ExitStack() as stack:
        yield stack


def process_of(url: str) -> int:
    """The process that listens at the address: the leader of its server's group."""
    import psutil

    port = int(url.rpartition(":")[2])
    for connection in psutil.net_connections("tcp"):
        address = connection.laddr
        if connection.pid and connection.status == "LISTEN" and address and address.port == port:
            return os.getpgid(connection.pid)
    raise AssertionError(f"nobody listens on {port}")


@pytest.mark.parametrize("victim", ["the prefill server", "the decode server", "the router"])
def test_a_killed_server_is_told_to_clients_and_may_come_back(
    deployment: RunningDeployment, revived: ExitStack, prompts, victim
):
    load = [prompt for prompt in prompts if len(prompt) > 2] * 8
    expected = complete(deployment.base_url, load)
    assert all(isinstance(answer, list) for answer in expected)
    (server,) = [each for each in deployment.started if each.name == victim]
    group = process_of(server.base_url)

    async def kill_under_load() -> list[Any]:
        asked = asyncio.create_task(_complete_all(deployment.base_url, load * 2))
        await asyncio.sleep(0.3)
        os.killpg(group, signal.SIGKILL)
        return await asked

    start = time.monotonic()
    answers = asyncio.run(kill_under_load())
    assert time.monotonic() - start < ANSWER_TIMEOUT_S / 2
    told = [answer for answer in answers if isinstance(answer, str)]
    assert told
    assert all(words.startswith(("status 5", "connection: ")) for words in told)
    for answer, right in zip(answers, expected * 2, strict=True):
        assert isinstance(answer, str) or answer == right
    revived.enter_context(run_servers([server], start_timeout_s=SERVING.start_timeout_s))
    wait_until_answered(deployment.base_url, load[0])
    assert complete(deployment.base_url, load) == expected


def wait_until_answered(url: str, prompt: Sequence[int]) -> None:
    deadline = time.monotonic() + 30
    while isinstance(failure := complete(url, [prompt])[0], str):
        assert time.monotonic() < deadline, failure
        time.sleep(0.5)
