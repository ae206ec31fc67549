"""Stage measure-distillation: tokens/s and memory of a step, and where its time goes."""

import copy
import gc
import json
import logging
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from slimwise.backbones.linear_attention import use_blocked_delta_rule
from slimwise.backbones.published import language_model, random_causal_model
from slimwise.backbones.registry import backbone_for
from slimwise.core.keep_set import KeepSet
from slimwise.distill.batches import SplitSequence
from slimwise.distill.loop import accumulate
from slimwise.distill.optimiser import StudentOptimiser
from slimwise.distill.processes import Processes
from slimwise.distill.speed.config import DistillSpeedConfig, Implementation
from slimwise.distill.speed.two_copies import two_copies_step
from slimwise.distill.student import Student, make_student
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
    weights_gib = None
    try:
        model = random_causal_model(
            language_model(config.shape, config.num_layers), torch.bfloat16, device, config.seed
        )
        copies = 2 if config.implementation is Implementation.TWO_COPIES else 1
        weights_gib = copies * sum(weight.nbytes for weight in model.parameters()) / _GIB
        step = _step(config, model)
        logger.info("%.1f GiB of weights, %.0f s", weights_gib, time.perf_counter() - started)
    except torch.OutOfMemoryError as failure:
        yield _row(config, weights_gib, None, failure=_reason(failure))
        return
    for num_tokens in config.sequence_tokens:
        yield _measure(config, step, num_tokens, weights_gib, device)
        if config.profile:
            _write_profile(config, step, num_tokens, out)


def _step(config: DistillSpeedConfig, model: Any) -> Step:
    settings = config.distillation
    if config.implementation is Implementation.TWO_COPIES:
        student = _student(config, copy.deepcopy(model))
        optimiser = StudentOptimiser(student, settings)

        def straightforward(sequences: list[SplitSequence]) -> None:
            two_copies_step(model, student, sequences, settings)
            float(optimiser.step(0))

        return straightforward
    if config.blocked_delta_rule:
        use_blocked_delta_rule(model)
    student = _student(config, model)
    optimiser = StudentOptimiser(student, settings)

    def ours(sequences: list[SplitSequence]) -> None:
        accumulate(student, sequences, settings, processes=Processes(0, 1))
        float(optimiser.step(0))

    return ours


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
    config: DistillSpeedConfig,
    step: Step,
    num_tokens: int,
    weights_gib: float,
    device: torch.device,
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
        reason = _reason(failure)
        gc.collect()
        return _row(config, weights_gib, num_tokens, failure=reason)
    tokens_per_s = len(sequences) * num_tokens / seconds
    return _row(
        config,
        weights_gib,
        num_tokens,
        num_sequences=len(sequences),
        tokens_per_s=tokens_per_s,
        peak_gib=torch.cuda.max_memory_allocated() / _GIB if device.type == "cuda" else None,
        training_hours=config.training_tokens / tokens_per_s / 3600,
    )


def _row(
    config: DistillSpeedConfig, weights_gib: float | None, num_tokens: int | None, **found: Any
) -> dict[str, Any]:
    return {
        "shape": str(config.shape),
        "num_layers": language_model(config.shape, config.num_layers).num_hidden_layers,
        "implementation": str(config.implementation),
        "route": config.distillation.route,
        "blocked_delta_rule": config.blocked_delta_rule,
        "tensor_float32": config.tensor_float32,
        "sequence_tokens": num_tokens,
        "weights_gib": weights_gib,
        "tokens_per_s": None,
        "peak_gib": None,
        **found,
    }


def _write_profile(config: DistillSpeedConfig, step: Step, num_tokens: int, out: Path) -> None:
    """Operators by their own time on the device, for one sequence split in the middle."""
    kinds = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        kinds.append(ProfilerActivity.CUDA)
    with profile(activities=kinds) as profiled:
        step(_sequences(config, num_tokens, 1))
    key = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    table = profiled.key_averages().table(
        sort_by=key, row_limit=_PROFILE_ROWS, max_name_column_width=70
    )
    path = out.with_name(f"{out.stem}_profile_{config.distillation.route}_{num_tokens}.txt")
    path.write_text(table, encoding="utf-8")


def _reset_peak(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()


def _reason(failure: BaseException) -> str:
    """What was asked for, and how much the device has."""
    return ". ".join(str(failure).split(". ")[:3])
