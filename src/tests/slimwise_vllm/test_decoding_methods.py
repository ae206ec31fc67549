"""Other ways for vLLM to decode: drafted tokens, steps scheduled ahead, beams."""

import pytest

from .own_process import answers_of_own_process

pytestmark = pytest.mark.slow

MODES = ("full", "pruned", "slimwise", "reverse")
NUM_TOKENS = 48
ALLOWED = [10, 11, 12]
DRAFTS = {"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 2}


@pytest.fixture(scope="module")
def start(distilled_backbone, start_engine):
    """A function that starts an engine with distilled and other pools."""
    distilled = distilled_backbone("gemma4")

    def engine(**options):
        config = distilled.additional_config(check_routing=True)
        folder = distilled.backbone.folder
        return start_engine(folder, dtype="float32", additional_config=config, **options)

    return engine


@pytest.fixture(scope="module")
def engine(start):
    return start(async_scheduling=False)


def answers(engine, ask, sampling, prompts, **arguments):
    turns = ask(engine, prompts, sampling(NUM_TOKENS, **arguments))
    return [turn.answer for turn in turns]


def test_drafted_tokens_are_read_by_the_decode_pool(
    distilled_backbone, engine, ask, sampling, prompts, tmp_path
):
    """Of three tokens to choose from, so that what comes next has often come before."""
    distilled = distilled_backbone("gemma4")
    parameters = {mode: sampling(NUM_TOKENS, mode=mode) for mode in MODES}
    for asked in parameters.values():
        asked.allowed_token_ids = ALLOWED
    expected = {
        mode: [turn.answer for turn in ask(engine, prompts, asked)]
        for mode, asked in parameters.items()
    }
    # The drafter imports libraries among which another engine of the process could not start.
    answers, metrics, _ = answers_of_own_process(
        distilled.backbone.folder,
        prompts,
        MODES,
        environment={},
        scratch=tmp_path,
        sampling={"max_tokens": NUM_TOKENS, "allowed_token_ids": ALLOWED},
        dtype="float32",
        additional_config=distilled.additional_config(check_routing=True),
        speculative_config=DRAFTS,
        disable_log_stats=False,
    )
    assert answers == expected
    assert metrics["vllm:spec_decode_num_accepted_tokens"] > 0


@pytest.mark.gpu  # vLLM turns it off on CPU
def test_steps_scheduled_ahead_keep_every_token_on_its_pool(engine, start, ask, sampling, prompts):
    ahead = start(async_scheduling=True)
    assert ahead.llm_engine.vllm_config.scheduler_config.async_scheduling
    for mode in MODES:
        expected = answers(engine, ask, sampling, prompts, mode=mode)
        assert answers(ahead, ask, sampling, prompts, mode=mode) == expected


def test_beam_search_is_refused_by_name(engine, prompts):
    from vllm.sampling_params import BeamSearchParams

    beams = BeamSearchParams(beam_width=2, max_tokens=3)
    with pytest.raises(Exception, match="do not support beam search"):
        engine.beam_search([{"prompt_token_ids": prompts[2]}], beams)
