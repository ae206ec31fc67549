"""The distillation loop: resumes at its last saved step, logs one row a step."""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from tqdm import tqdm

from slimwise.artifacts.distill_log import LOG_NAME
from slimwise.artifacts.resume_state import read_resume_state, write_resume_state
from slimwise.core.vocabulary import Distillation
from slimwise.distill.batches import SplitBatch, SplitSequence, micro_batches
from slimwise.distill.cached import cached_loss
from slimwise.distill.config import DistillationConfig
from slimwise.distill.log import append_row, cut_log, token_counts
from slimwise.distill.one_pass import one_pass_loss
from slimwise.distill.optimiser import StudentOptimiser, schedule
from slimwise.distill.sources import SequenceSource
from slimwise.distill.steps import step_sequences
from slimwise.distill.student import Student
from slimwise.errors import SlimWiseError
from slimwise.processes import Processes

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StepMeans:
    """Means over the scored predictions of a step, all processes together."""

    loss: float
    divergence: float

    def as_text(self) -> tuple[str, str]:
        """Both numbers as the log shows them."""
        return f"{self.loss:.6f}", f"{self.divergence:.6f}"


@dataclass(frozen=True)
class StepLosses:
    """Loss and divergence of a step, which the device may still be computing.

    What each batch of this process adds to the means, [N, 2], and the means, [2].
    """

    parts_N2: Tensor
    means_2: Tensor

    def read(self, step: int, config: DistillationConfig) -> StepMeans:
        """The means, once they are there; SlimWiseError names step and batch if one is not finite.

        config is for the remedy.
        """
        for batch, (loss, _) in enumerate(self.parts_N2.tolist()):
            _check_finite(f"loss is {loss} at step {step}, batch {batch}", loss, config)
        return StepMeans(*self.means_2.tolist())


def distil(
    student: Student,
    source: SequenceSource,
    rule: Distillation,
    config: DistillationConfig,
    *,
    work: Path,
    processes: Processes,
) -> None:
    """Train the student in place; state and log are kept in the work directory.

    An interrupted run continues at its last saved step with the same data. A loss or a gradient
    that is not finite stops every process with the step; no state is saved after it.
    """
    optimiser = StudentOptimiser(student, config)
    first_step = _resume(student, optimiser, work, processes)
    steps = range(first_step, config.steps)
    upcoming = step_sequences(source, rule, config, first_step)
    for step in tqdm(steps, disable=None if processes.is_first else True):
        started, sequences = time.perf_counter(), upcoming
        losses = accumulate(student, sequences, config, processes=processes)
        device_norm = optimiser.step(step)
        # Drawn while the device is still at work.
        upcoming = step_sequences(source, rule, config, step + 1)
        means, norm = losses.read(step, config), float(device_norm)
        # Of the sum over all processes, so that none saves what a fault in another has spoilt.
        _check_finite(f"gradient norm is {norm} at step {step}", norm, config)
        if not processes.is_first:
            continue
        rate = config.learning_rate * schedule(step, config)
        seconds = time.perf_counter() - started
        row = [f"{norm:.4f}", f"{rate:.3e}", *token_counts(sequences), f"{seconds:.3f}"]
        append_row(work / LOG_NAME, [step, *means.as_text(), *row])
        if (step + 1) % config.checkpoint_every_steps == 0 or step + 1 == config.steps:
            write_resume_state(work, optimiser.state())
            logger.info("step %d of %d: loss %.4f", step + 1, config.steps, means.loss)
    processes.wait()


def _check_finite(finding: str, value: float, config: DistillationConfig) -> None:
    if not math.isfinite(value):
        raise SlimWiseError(
            f"distillation {finding}: lower distillation.learning_rate (now "
            f"{config.learning_rate}) and rerun; the last saved state is kept."
        )


def accumulate(
    student: Student,
    sequences: Sequence[SplitSequence],
    config: DistillationConfig,
    *,
    processes: Processes,
) -> StepLosses:
    """Leave the gradients of the step's mean loss, over exactly its scored predictions."""
    device = next(student.model.parameters()).device
    num_scored = max(sum(sequence.num_scored for sequence in sequences), 1)
    groups = micro_batches(
        processes.share(sequences),
        config.micro_batch_tokens,
        size=lambda s: len(s.ids) if config.route == "one_pass" else len(s.ids) - s.split,
    )
    route = one_pass_loss if config.route == "one_pass" else cached_loss
    parts = [torch.zeros(0, 2, device=device)]
    for group in groups:
        part = route(student, SplitBatch.of(group).to(device), config)
        loss = part.loss / num_scored
        loss.backward()
        parts.append(torch.stack([loss.detach(), part.divergence / num_scored])[None])
    processes.add_up(_gradients(student))
    parts_N2 = torch.cat(parts)
    means_2 = parts_N2.sum(dim=0)
    processes.add_up([means_2])
    return StepLosses(parts_N2, means_2)


def _gradients(student: Student) -> list[Tensor]:
    """Gradients of all trained parameters, zero where this process computed none."""
    parameters = student.trained().values()
    for parameter in parameters:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    return [parameter.grad for parameter in parameters if parameter.grad is not None]


def _resume(student: Student, optimiser: StudentOptimiser, work: Path, processes: Processes) -> int:
    """The first step still to do; the log is cut back to the steps before it.

    SlimWiseError if another host's process has another resume point.
    """
    state = read_resume_state(work)
    if state is not None:
        optimiser.load_state(state)
    next_step = optimiser.num_steps
    device = next(student.model.parameters()).device
    found = processes.gathered(torch.tensor([next_step], device=device))
    steps = sorted({int(step) for step in found})
    if len(steps) > 1:
        raise SlimWiseError(
            f"hosts would distil from different steps, {', '.join(map(str, steps))}: the resume "
            f"point {work} is not the same on all. Put results/ on a file system of all hosts."
        )
    if processes.is_first:
        cut_log(work / LOG_NAME, next_step)
        logger.info("distilling from step %d", next_step)
    return next_step
