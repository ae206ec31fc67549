"""The training loop: resumes at its last saved step, logs one row a step."""

import csv
import logging
import math
import os
import time
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader
from tqdm import tqdm

from slimwise.artifacts.resume_state import read_resume_state, write_resume_state
from slimwise.errors import SlimWiseError
from slimwise.train.config import TrainConfig
from slimwise.train.data import MicroBatch, TrainingSteps
from slimwise.train.loss import response_loss
from slimwise.train.optimiser import MasterWeightOptimiser, learning_rate

LOG_COLUMNS = ("step", "loss", "gradient_norm", "learning_rate", "tokens", "seconds")
_MAX_WORKERS = 8

logger = logging.getLogger(__name__)


def train(model: Any, tokenizer: Any, config: TrainConfig, work: Path) -> None:
    """Train the model in place; state and train_log.csv are kept in the work directory.

    An interrupted run continues at its last saved step with the same data order. A loss or a
    gradient that is not finite stops with its step; no state is saved after it.
    """
    device = next(model.parameters()).device
    optimiser = MasterWeightOptimiser(model, config)
    first_step = _resume(optimiser, work)
    model.train()
    steps = range(first_step, config.steps)
    loader = DataLoader(
        TrainingSteps(config, tokenizer),
        batch_size=None,
        sampler=list(steps),
        num_workers=min(_MAX_WORKERS, (os.cpu_count() or 1) - 1) if device.type == "cuda" else 0,
    )
    with (work / "train_log.csv").open("a", newline="") as log:
        rows = csv.writer(log, lineterminator="\n")
        for step, batches in tqdm(zip(steps, loader, strict=True), total=len(steps), disable=None):
            started = time.perf_counter()
            loss = _accumulate(model, [batch.to(device) for batch in batches], config, step)
            norm = optimiser.step(step)
            _check_finite(f"gradient norm is {norm} at step {step}", norm, config)
            tokens = sum(batch.num_tokens for batch in batches)
            rate = learning_rate(step, config)
            seconds = time.perf_counter() - started
            rows.writerow(
                [step, f"{loss:.5f}", f"{norm:.4f}", f"{rate:.3e}", tokens, f"{seconds:.3f}"]
            )
            if (step + 1) % config.checkpoint_every_steps == 0 or step + 1 == config.steps:
                log.flush()
                write_resume_state(work, optimiser.state())
                logger.info("step %d of %d: loss %.4f", step + 1, config.steps, loss)


def _accumulate(model: Any, batches: list[MicroBatch], config: TrainConfig, step: int) -> float:
    """Gradients of the step's mean loss; returns the cross entropy."""
    num_scored = sum(batch.num_scored for batch in batches)
    num_sequences = sum(len(batch.input_ids_BS) for batch in batches)
    total = 0.0
    for batch in batches:
        loss, cross_entropy = response_loss(
            model,
            batch,
            num_scored=num_scored,
            aux_loss_weight=config.aux_loss_weight,
            share=len(batch.input_ids_BS) / num_sequences,
        )
        loss.backward()
        total += cross_entropy.item()
    _check_finite(f"loss is {total} at step {step}", total, config)
    return total


def _check_finite(finding: str, value: float, config: TrainConfig) -> None:
    if not math.isfinite(value):
        raise SlimWiseError(
            f"training {finding}: lower training.learning_rate (now {config.learning_rate}) and "
            "rerun; the last saved state is kept."
        )


def _resume(optimiser: MasterWeightOptimiser, work: Path) -> int:
    """The first step still to do; the log is cut back to the steps before it."""
    state = read_resume_state(work)
    if state is None:
        _cut_log(work / "train_log.csv", 0)
        return 0
    optimiser.load_state(state)
    next_step = optimiser.num_steps
    _cut_log(work / "train_log.csv", next_step)
    logger.info("resuming training at step %d", next_step)
    return next_step


def _cut_log(path: Path, num_rows: int) -> None:
    kept = path.read_text(errors="replace").splitlines()[1 : num_rows + 1] if path.exists() else []
    path.write_text("\n".join([",".join(LOG_COLUMNS), *kept]) + "\n")
