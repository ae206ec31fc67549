"""The log of a distillation: one row a step, the source of its training curve. Torch-free."""

from pathlib import Path

import pandas as pd

from slimwise.errors import ArtifactError

LOG_NAME = "distill_log.csv"
LOG_COLUMNS = (
    "step",
    "loss",
    "kl",
    "gradient_norm",
    "learning_rate",
    "sequence_tokens",
    "student_tokens",
    "seconds",
)


def read_distill_log(path: Path) -> pd.DataFrame:
    """The steps in order; loss and kl in nats a token.

    ArtifactError if the file is missing, has other columns, or holds anything but numbers.
    """
    try:
        log = pd.read_csv(path).astype(float)
    except (OSError, ValueError) as failure:
        raise ArtifactError(
            f"cannot read the distillation log {path}: {failure}. Delete its folder and run "
            "the study again."
        ) from failure
    if tuple(log.columns) != LOG_COLUMNS:
        raise ArtifactError(
            f"the distillation log {path} has columns {', '.join(log.columns)}; expected "
            f"{', '.join(LOG_COLUMNS)}. Delete its folder and run the study again."
        )
    return log
