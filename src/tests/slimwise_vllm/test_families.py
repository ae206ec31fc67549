"""Every family: the four modes against the pruned checkpoint and against transformers."""

from statistics import mean

import pytest

pytestmark = pytest.mark.slow

FAMILIES = ("qwen3_moe", "qwen2_moe", "olmoe", "mixtral", "gemma4", "qwen3_5_moe")
HYBRID = FAMILIES[-1]
TOLERANCE = 1e-4
"""float32, four layers, sums in another order."""
PAIRS = {"full": (0, 0), "pruned": (1, 1), "slimwise": (0, 1), "reverse": (1, 0)}
"""Full or pruned model of prefill and of decode."""


@pytest.fixture(scope="module", params=FAMILIES)
def served(request, tiny_backbone, start_engine, ask, sampling, prompts):
    """The family, its backbone's turns in all modes, and the pruned checkpoint's turns."""
    backbone = tiny_backbone(request.param)
    config = backbone.additional_config(check_routing=True)
    full = start_engine(backbone.folder, dtype=backbone.dtype, additional_config=config)
    pruned = start_engine(backbone.pruned_folder, dtype=backbone.dtype)
    turns = {mode: ask(full, prompts, sampling(prompt_logprobs=0, mode=mode)) for mode in PAIRS}
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


@pytest.mark.parametrize("mode", PAIRS)
def test_every_mode_is_two_models_of_transformers_with_one_cache(
    served, hf_models, reference, mode
):
    family, turns, _ = served
    models = hf_models(family)

    def scored(pair):
        prefill, decode = (models[pruned] for pruned in pair)
        return [reference(prefill, decode, turn) for turn in turns[mode]]

    if family == HYBRID:
        assert_nearest(turns[mode], scored, PAIRS[mode])
    else:
        assert_equal(turns[mode], scored(PAIRS[mode]))


def assert_equal(turns, scored):
    for turn, (greedy, logprobs) in zip(turns, scored, strict=True):
        assert turn.answer == greedy
        assert turn.logprobs == pytest.approx(logprobs, abs=TOLERANCE)


def assert_nearest(turns, scored, pair):
    """In bfloat16, where near ties send tokens to other experts, no other pair is near."""
    distances = {
        pair: mean(
            abs(here - there)
            for turn, (_, logprobs) in zip(turns, scored(pair), strict=True)
            for here, there in zip(turn.logprobs, logprobs, strict=True)
        )
        for pair in PAIRS.values()
    }
    right = distances.pop(pair)
    assert 4 * right < min(distances.values())
