"""Stage measure-distillation: tokens/s and memory of a step, and where its time goes."""

import copy
import json
import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from slimwise.backbones.linear_attention import use_blocked_delta_rule
from slimwise.backbones.published import language_model, random_causal_model
from slimwise.backbones.registry import backbone_for
from slimwise.core.keep_set import KeepSet
from slimwise.distill.batches import SplitSequence
from slimwise.distill.config import DistillationConfig
from slimwise.distill.loop import accumulate
from slimwise.distill.optimiser import StudentOptimiser
from slimwise.distill.speed.config import DistillSpeedConfig, Implementation
from slimwise.distill.speed.two_copies import two_copies_step
from slimwise.distill.student import Student, make_student
from slimwise.processes import Processes
from slimwise.provenance import current_provenance

logger = logging.getLogger(__name__)

_GIB = 2**30
_PROFILE_ROWS = 40

Step = Callable[[list[SplitSequence]], None]
"""One optimiser step on the sequences."""


def run(config: DistillSpeedConfig, *, out: Path) -> None:
    """Append one row of JSON for each length, as soon as it is measured.

    Too little memory is a finding: its row has no speed. A profile goes beside the rows.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    out.parent.mkdir(parents=True, exist_ok=True)
    torch.set_float32_matmul_precision("high" if config.tensor_float32 else "highest")
    for row in _rows(config, device, out):
        logger.info("%s", row)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, **asdict(current_provenance())}) + "\n")


def _rows(config: DistillSpeedConfig, device: torch.device, out: Path) -> Iterator[dict[str, Any]]:
    started = time.perf_counter()
    try:
        model = random_causal_model(
            language_model(config.shape, config.num_layers), torch.bfloat16, device, config.seed
        )
        weights_gib = sum(weight.nbytes for weight in model.parameters()) / _GIB
        steps = _steps(config, model)
    except torch.OutOfMemoryError as failure:
        yield _row(config, failure=_reason(failure))
        return
    logger.info("%.1f GiB of weights, %.0f s", weights_gib, time.perf_counter() - started)
    for route, step in steps.items():
        for num_tokens in config.sequence_tokens:
            row = _measure(config, step, num_tokens, device)
            yield {**row, "route": route, "weights_gib": weights_gib}
        if config.profile:
            path = out.with_name(f"{out.stem}_profile_{route}.txt")
            path.write_text(_profile(step, _sequences(config, config.sequence_tokens[0], 1)))


def _steps(config: DistillSpeedConfig, model: Any) -> dict[str, Step]:
    """The step of each route, on one student."""
    if config.implementation is Implementation.TWO_COPIES:
        student = _student(config, copy.deepcopy(model))
        return {
            "whole": partial(_two_copies_step, config, model, student, _optimiser(config, student))
        }
    if config.blocked_delta_rule:
        use_blocked_delta_rule(model)
    student = _student(config, model)
    optimiser = _optimiser(config, student)
    return {
        route: partial(
            _our_step, config.distillation.model_copy(update={"route": route}), student, optimiser
        )
        for route in config.routes
    }


def _optimiser(config: DistillSpeedConfig, student: Student) -> StudentOptimiser:
    return StudentOptimiser(student, config.distillation)


def _our_step(
    settings: DistillationConfig,
    student: Student,
    optimiser: StudentOptimiser,
    sequences: list[SplitSequence],
) -> None:
    accumulate(student, sequences, settings, processes=Processes(0, 1))
    float(optimiser.step(0))


def _two_copies_step(
    config: DistillSpeedConfig,
    teacher: Any,
    student: Student,
    optimiser: StudentOptimiser,
    sequences: list[SplitSequence],
) -> None:
    two_copies_step(teacher, student, sequences, config.distillation)
    float(optimiser.step(0))


def _student(config: DistillSpeedConfig, model: Any) -> Student:
    """A student that keeps the first experts of each layer."""
    family = backbone_for(model.config.model_type)
    described = model.config.to_dict()
    shape = family.shape(described)
    kept = tuple(range(max(round(config.kept_share * shape.num_experts), shape.top_k)))
    keep_set = KeepSet((kept,) * shape.num_layers, shape.num_experts, shape.top_k)
    student = make_student(model, keep_set, family.gate_rule(described), seed=config.seed)
    if config.distillation.checkpoint_layers:
        student.checkpoint_layers()
    return student


def _sequences(config: DistillSpeedConfig, num_tokens: int, count: int) -> list[SplitSequence]:
    """Random tokens; split points spread evenly, as uniform ones are on average."""
    rng = random.Random(config.seed)
    vocabulary = language_model(config.shape, config.num_layers).vocab_size
    return [
        SplitSequence(
            tuple(rng.randrange(vocabulary) for _ in range(num_tokens)),
            int((number + 0.5) / count * num_tokens),
        )
        for number in range(count)
    ]


def _measure(
    config: DistillSpeedConfig, step: Step, num_tokens: int, device: torch.device
) -> dict[str, Any]:
    sequences = _sequences(config, num_tokens, max(config.step_tokens // num_tokens, 1))
    try:
        # The first step compiles kernels, makes the moments and grows the allocator.
        step(sequences[:1])
        _reset_peak(device)
        started = time.perf_counter()
        step(sequences)
        seconds = time.perf_counter() - started
    except torch.OutOfMemoryError as failure:
        return _row(config, sequence_tokens=num_tokens, failure=_reason(failure))
    tokens_per_s = len(sequences) * num_tokens / seconds
    return _row(
        config,
        sequence_tokens=num_tokens,
        num_sequences=len(sequences),
        tokens_per_s=tokens_per_s,
        peak_gib=torch.cuda.max_memory_allocated() / _GIB if device.type == "cuda" else None,
        training_hours=config.training_tokens / tokens_per_s / 3600,
    )


def _row(config: DistillSpeedConfig, **found: Any) -> dict[str, Any]:
    is_ours = config.implementation is Implementation.SLIMWISE
    return {
        "shape": str(config.shape),
        "num_layers": language_model(config.shape, config.num_layers).num_hidden_layers,
        "implementation": str(config.implementation),
        "blocked_delta_rule": is_ours and config.blocked_delta_rule,
        "tensor_float32": config.tensor_float32,
        "sequence_tokens": None,
        "tokens_per_s": None,
        "peak_gib": None,
        **found,
    }


def _profile(step: Step, sequences: list[SplitSequence]) -> str:
    """Operators by their own time on the device."""
    kinds, key = [ProfilerActivity.CPU], "self_cpu_time_total"
    if torch.cuda.is_available():
        kinds, key = [*kinds, ProfilerActivity.CUDA], "self_device_time_total"
    with profile(activities=kinds) as profiled:
        step(sequences)
    averages = profiled.key_averages()
    return averages.table(sort_by=key, row_limit=_PROFILE_ROWS, max_name_column_width=70)


def _reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()


def _reason(failure: BaseException) -> str:
    """What was asked for, and how much the device has."""
    return ". ".join(str(failure).split(". ")[:3])
