"""Two spawned workers share a model, and agree on pools and answers."""

import re

import pytest

from .own_process import answers_of_own_process

pytestmark = pytest.mark.slow

ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "1",
    "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
    "VLLM_LOGGING_LEVEL": "INFO",
}
MODES = ("full", "slimwise", "pruned")


def assert_two_workers_agree(alone, folder, config, prompts, scratch, **options):
    """With the answers of one worker, and with each other on what the pools are."""
    answers, _, output = answers_of_own_process(
        folder,
        prompts,
        MODES,
        environment=ENVIRONMENT,
        scratch=scratch,
        sampling={"max_tokens": 12},
        dtype="float32",
        additional_config=config,
        tensor_parallel_size=2,
        **options,
    )
    assert answers == alone
    digests = dict(re.findall(r"rank (\d): pool half of .* digest (\w+)", output))
    assert set(digests) == {"0", "1"}
    assert len(set(digests.values())) == 1


@pytest.fixture
def answers_alone(start_engine, ask, sampling, prompts):
    """A function to the answers of an engine of one worker, by mode."""

    def answers(folder, config):
        engine = start_engine(folder, dtype="float32", additional_config=config)
        turns = {mode: ask(engine, prompts, sampling(mode=mode)) for mode in MODES}
        return {mode: [turn.answer for turn in found] for mode, found in turns.items()}

    return answers


# vLLM's CPU kernels ignore the expert map, so they cannot share experts out.
@pytest.mark.parametrize("expert_parallel", [False, pytest.param(True, marks=pytest.mark.gpu)])
def test_two_workers_answer_like_one(
    tiny_backbone, answers_alone, prompts, tmp_path, expert_parallel
):
    backbone = tiny_backbone("qwen3_moe")
    config = backbone.additional_config(check_routing=True)
    alone = answers_alone(backbone.folder, config)
    assert_two_workers_agree(
        alone, backbone.folder, config, prompts, tmp_path, enable_expert_parallel=expert_parallel
    )


def test_two_workers_share_what_was_trained(distilled_backbone, answers_alone, prompts, tmp_path):
    distilled = distilled_backbone("gemma4")
    config, folder = distilled.additional_config(check_routing=True), distilled.backbone.folder
    assert_two_workers_agree(answers_alone(folder, config), folder, config, prompts, tmp_path)
