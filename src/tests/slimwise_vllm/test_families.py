"""Every family: the four modes against the pruned checkpoint and against transformers."""

import pytest

pytestmark = pytest.mark.slow

FAMILIES = ("qwen3_moe", "qwen2_moe", "olmoe", "gemma4", "qwen3_5_moe")
EXACT = FAMILIES[:-1]
TOLERANCE = 1e-4
"""float32, four layers, sums in another order."""
HYBRID_TOLERANCE = 0.1
"""bfloat16 has 8 bits: transformers and vLLM round the recurrent state differently."""


@pytest.fixture(scope="module", params=FAMILIES)
def served(request, tiny_backbone, start_engine, ask, sampling, prompts):
    """The family, its backbone's turns in all modes, and the pruned checkpoint's turns."""
    backbone = tiny_backbone(request.param)
    config = backbone.additional_config(check_routing=True)
    full = start_engine(backbone.folder, dtype=backbone.dtype, additional_config=config)
    pruned = start_engine(backbone.pruned_folder, dtype=backbone.dtype)
    turns = {
        mode: ask(full, prompts, sampling(prompt_logprobs=0, mode=mode))
        for mode in ("full", "pruned", "slimwise", "reverse")
    }
    return request.param, turns, ask(pruned, prompts, sampling(prompt_logprobs=0))


def answers(turns):
    return [turn.answer for turn in turns]


def prompt_logprobs(turns):
    return [turn.prompt_logprobs for turn in turns]


def test_prompts_do_not_feel_the_decode_pool(served):
    _, turns, _ = served
    assert prompt_logprobs(turns["slimwise"]) == prompt_logprobs(turns["full"])
    assert prompt_logprobs(turns["reverse"]) == prompt_logprobs(turns["pruned"])


def test_modes_differ(served):
    _, turns, _ = served
    assert len({str(answers(mode)) for mode in turns.values()}) == 4
    assert prompt_logprobs(turns["full"]) != prompt_logprobs(turns["pruned"])


def test_pruned_mode_is_the_pruned_checkpoint(served):
    _, turns, checkpoint = served
    assert answers(turns["pruned"]) == answers(checkpoint)
    for masked, pruned in zip(turns["pruned"], checkpoint, strict=True):
        assert masked.logprobs == pytest.approx(pruned.logprobs, abs=TOLERANCE)
        assert masked.prompt_logprobs == pytest.approx(pruned.prompt_logprobs, abs=TOLERANCE)


@pytest.mark.parametrize("mode", ["full", "pruned", "slimwise", "reverse"])
def test_every_mode_is_two_models_of_transformers_with_one_cache(
    served, hf_models, reference, mode
):
    family, turns, _ = served
    full, pruned = hf_models(family)
    prefill = pruned if mode in ("pruned", "reverse") else full
    decode = pruned if mode in ("pruned", "slimwise") else full
    for turn in turns[mode]:
        greedy, logprobs = reference(prefill, decode, turn)
        tolerance = TOLERANCE if family in EXACT else HYBRID_TOLERANCE
        assert turn.logprobs == pytest.approx(logprobs, abs=tolerance)
        if family in EXACT:
            assert turn.answer == greedy
