"""The log of a distillation: one row a step, the source of its training curve. Torch-free."""

from pathlib import Path

import pandas as pd

from slimwise.artifacts.tables import check_columns, csv_frame

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

_RENEW = "Delete its folder and run the study again."


def read_distill_log(path: Path) -> pd.DataFrame:
    """The steps in order; loss and kl in nats a token.

    ArtifactError if the file is missing, has other columns, or holds anything but numbers.
    """
    log = csv_frame(path, "the distillation log", _RENEW, dtype=float)
    check_columns(f"the distillation log {path}", log, LOG_COLUMNS, _RENEW)
    return log
