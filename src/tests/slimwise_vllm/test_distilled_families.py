"""Distilled pools in every family: against the merged checkpoint, and against the student."""

from statistics import mean

import pytest
import torch

pytestmark = pytest.mark.slow

FAMILIES = ("gemma4", "qwen3_5_moe")
HYBRID = FAMILIES[-1]
TOLERANCE = 1e-4
"""float32, four layers, sums in another order."""
MODES = ("full", "pruned", "slimwise", "reverse")


@pytest.fixture(scope="module", params=FAMILIES)
def distilled(request, distilled_backbone):
    return distilled_backbone(request.param)


@pytest.fixture(scope="module")
def turns(distilled, start_engine, ask, sampling, prompts):
    """Turns on the distilled pool in all modes, and those of the merged checkpoint."""
    config = distilled.additional_config(check_routing=True)
    tiny = distilled.backbone
    engine = start_engine(tiny.folder, dtype=tiny.dtype, additional_config=config)
    merged = start_engine(distilled.merged_folder, dtype=tiny.dtype)
    parameters = {mode: sampling(prompt_logprobs=0, mode=mode, pool="kd") for mode in MODES}
    found = {mode: ask(engine, prompts, parameters[mode]) for mode in MODES}
    return found | {"checkpoint": ask(merged, prompts, sampling(prompt_logprobs=0))}


def answers(turns):
    return [turn.answer for turn in turns]


def prompt_logprobs(turns):
    return [turn.prompt_logprobs for turn in turns]


def test_prompts_do_not_feel_what_was_trained_for_decode(turns):
    assert prompt_logprobs(turns["slimwise"]) == prompt_logprobs(turns["full"])
    assert prompt_logprobs(turns["reverse"]) == prompt_logprobs(turns["pruned"])
    assert prompt_logprobs(turns["pruned"]) != prompt_logprobs(turns["full"])


def test_pruned_mode_is_the_merged_checkpoint(distilled, turns):
    if distilled.backbone.family == HYBRID:
        near = distance(turns["pruned"], [turn.logprobs for turn in turns["checkpoint"]])
        far = distance(turns["pruned"], [turn.logprobs for turn in turns["full"]])
        assert 4 * near < far
        return
    assert answers(turns["pruned"]) == answers(turns["checkpoint"])
    for ours, exported in zip(turns["pruned"], turns["checkpoint"], strict=True):
        assert ours.logprobs == pytest.approx(exported.logprobs, abs=TOLERANCE)
        assert ours.prompt_logprobs == pytest.approx(exported.prompt_logprobs, abs=TOLERANCE)


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_teacher_and_student_of_transformers(distilled, turns, mode):
    """The student of distillation, which reads a sequence in one pass, token by token."""

    def scored(mode):
        return [_scored_by_student(distilled.student, turn, mode) for turn in turns_of_mode]

    turns_of_mode = turns[mode]
    if distilled.backbone.family == HYBRID:
        distances = {
            other: distance(turns_of_mode, [logprobs for _, logprobs in scored(other)])
            for other in MODES
        }
        right = distances.pop(mode)
        assert 4 * right < min(distances.values())
        return
    for turn, (greedy, logprobs) in zip(turns_of_mode, scored(mode), strict=True):
        assert turn.answer == greedy
        assert turn.logprobs == pytest.approx(logprobs, abs=TOLERANCE)


def _scored_by_student(student, turn, mode):
    """Greedy choices and the answer's log-probabilities."""
    ids = torch.tensor([turn.prompt + turn.answer[:-1]])
    is_decode = torch.arange(ids.shape[1]) >= len(turn.prompt) - 1
    is_student = {
        "full": torch.zeros_like(is_decode),
        "pruned": torch.ones_like(is_decode),
        "slimwise": is_decode,
        "reverse": ~is_decode,
    }
    student.phases.by_token(is_student[mode][None])
    with torch.inference_mode():
        hidden_SD = student.hidden(input_ids=ids, use_cache=False).last_hidden_state[0]
        logprobs = student.logits(hidden_SD[is_decode]).float().log_softmax(-1)
    answered = logprobs[range(len(turn.answer)), turn.answer]
    return logprobs.argmax(-1).tolist(), answered.tolist()


def distance(turns, logprobs):
    """Mean distance of log-probabilities; in bfloat16 near ties send tokens to other experts."""
    return mean(
        abs(here - there)
        for turn, scored in zip(turns, logprobs, strict=True)
        for here, there in zip(turn.logprobs, scored, strict=True)
    )
