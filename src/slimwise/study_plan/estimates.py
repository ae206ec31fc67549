"""What each stage of a study will take, with what the number stands on and assumes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from slimwise.config import StudyConfig
from slimwise.core.vocabulary import Packing, ServingMode
from slimwise.study_plan.checkpoint_sizes import PlannedBackbone
from slimwise.study_plan.references import (
    Speed,
    answer_lengths,
    decode_speed,
    speed_of,
)

# SlimWise, Data: 282 M tokens in 64,000 sequences.
_MEAN_TRAINING_TOKENS = 282e6 / 64_000


@dataclass(frozen=True)
class Estimate:
    """One row of the plan: jobs, or passes over the benchmarks, and what all of them take.

    Hours are of one GPU, and null where nothing like it was measured.
    """

    stage: str
    count: int
    gpu_hours: float | None = 0.0
    most_gpu_hours: float | None = 0.0
    num_bytes: int = 0
    basis: str = ""
    assumption: str = ""


class _OutputTokens(NamedTuple):
    """Of one pass over the benchmarks: expected, and if every answer hits the budget."""

    expected: float
    most: float


def estimates(study: StudyConfig, backbone: PlannedBackbone) -> list[Estimate]:
    """The stages that need a GPU or a large disk, in pipeline order."""
    return [
        Estimate(
            "backbone",
            1,
            num_bytes=backbone.num_bytes,
            basis="sum of its tensors",
            assumption="bfloat16, without a multi-token-prediction head",
        ),
        _calibration(study, backbone),
        _checkpoints(study, backbone),
        *_distillation(study, backbone),
        *_evaluation(study, backbone),
    ]


def _calibration(study: StudyConfig, backbone: PlannedBackbone) -> Estimate:
    config = study.calibration
    num_sequences = config.sequences_per_component * len(config.components)
    num_tokens = num_sequences * config.max_sequence_tokens
    fills = config.packing is not Packing.NONE
    speed = speed_of("score", backbone.published) if backbone.published else None
    hours = _hours(num_tokens, speed)
    return Estimate(
        "collect_stats",
        1,
        hours,
        hours,
        basis=str(speed or "not measured"),
        assumption=f"{num_tokens / 1e6:.1f} M tokens" + ("" if fills else ", if all are full"),
    )


def _checkpoints(study: StudyConfig, backbone: PlannedBackbone) -> Estimate:
    decoders = study.decoders()[1:]
    distilled = study.distilled_decoders()
    size = sum(backbone.pruned_bytes(decoder.num_kept or 0) for decoder in decoders)
    size += sum(
        backbone.pruned_bytes(decoder.num_kept or 0) + backbone.shared_expert_bytes
        for decoder in distilled
    )
    return Estimate(
        "export_decoder",
        len(decoders) + len(distilled),
        num_bytes=size,
        basis="bytes of kept experts and of whatever is not expert",
        assumption="every checkpoint is kept",
    )


def _distillation(study: StudyConfig, backbone: PlannedBackbone) -> Iterator[Estimate]:
    decoders, config = study.distilled_decoders(), study.distillation
    if not decoders:
        return
    speed = speed_of(f"distill_{config.route}", backbone.published) if backbone.published else None
    length = min(_MEAN_TRAINING_TOKENS, config.max_sequence_tokens)
    num_sequences = len(decoders) * config.steps * config.batch_sequences
    yield Estimate(
        "distill_decoder",
        len(decoders),
        _hours(num_sequences * length, speed),
        _hours(num_sequences * config.max_sequence_tokens, speed),
        num_bytes=len(decoders) * backbone.trained_bytes,
        basis=str(speed or "not measured"),
        assumption=f"{length:,.0f} tokens a sequence (SlimWise, Data), "
        f"at most {config.max_sequence_tokens:,}",
    )


def _evaluation(study: StudyConfig, backbone: PlannedBackbone) -> Iterator[Estimate]:
    """Each stage's passes over the benchmarks, by how many experts their decoding uses."""
    num_experts = backbone.shape.num_experts
    passes = {
        "generate_full_answers": [num_experts],
        "generate_pruned_answers": [
            decoder.num_kept for decoder in study.standalone_decoders() if decoder.num_kept
        ],
        "generate_colocated_answers": [
            num_experts if mode is ServingMode.REVERSE else decoder.num_kept or num_experts
            for decoder in study.colocated_decoders()
            for mode in study.evaluation.colocated_modes(decoder)
        ],
        # The prefill server holds a GPU as long as its decode server.
        "generate_disaggregated_answers": [
            decoder.num_kept or num_experts
            for decoder in study.disaggregated_decoders()
            for _server in range(2)
        ],
    }
    for stage, counts in passes.items():
        if counts:
            yield _answers(stage, [count / num_experts for count in counts], study, backbone)


def _answers(
    stage: str, kept_shares: list[float], study: StudyConfig, backbone: PlannedBackbone
) -> Estimate:
    tokens = _asked(study)
    if not backbone.published or tokens is None:
        return Estimate(stage, len(kept_shares), None, None, basis="not measured")
    batch = min(study.evaluation.concurrency, study.serving.max_num_seqs)
    speeds = [decode_speed(share, batch) for share in kept_shares]
    first = speeds[0]
    rates = sorted({speed.tokens_per_s for speed in speeds})
    return Estimate(
        stage,
        len(kept_shares),
        sum(_hours(tokens.expected, speed) or 0.0 for speed in speeds),
        sum(_hours(tokens.most, speed) or 0.0 for speed in speeds),
        basis=f"{' to '.join(f'{rate:,.0f}' for rate in dict.fromkeys((rates[0], rates[-1])))} "
        f"tokens/s of {first.shape} at batch {first.batch} ({first.source})",
        assumption=f"{tokens.expected / 1e6:.1f} M tokens a pass of the full model's lengths, at "
        f"most {tokens.most / 1e6:.0f} M; context of 1,281 tokens",
    )


def _asked(study: StudyConfig) -> _OutputTokens | None:
    """None if a benchmark's lengths are not known. Prompts take a few per cent of the time."""
    config = study.evaluation
    runs = config.sampled_runs + config.greedy
    expected = most = 0.0
    for name in config.benchmarks:
        length = answer_lengths().get(name)
        if length is None:
            return None
        items = runs * min(config.num_items_of.get(name, config.num_items), length.num_items)
        expected += items * min(length.mean_tokens, config.budget_tokens)
        most += items * config.budget_tokens
    return _OutputTokens(expected, most)


def _hours(num_tokens: float, speed: Speed | None) -> float | None:
    return None if speed is None else num_tokens / speed.tokens_per_s / 3600
