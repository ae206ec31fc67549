"""Graded answers as a matrix of items by runs, the form that statistics take.

Legend: I items, R runs.
"""

import numpy as np
import pandas as pd

from slimwise.benchmarks.tool_calls.categories import item_weights as published_weights
from slimwise.errors import ArtifactError


def by_item_and_run(answers: pd.DataFrame, column: str) -> np.ndarray:
    """The column's values of one setting, [I, R] float64; items sorted by id, runs by number.

    Every run must hold the same items, each once.
    """
    return answers.pivot(index="item_id", columns="run", values=column).to_numpy(np.float64)


def item_weights(answers: pd.DataFrame) -> np.ndarray:
    """How much each item of one setting counts in its accuracy, [I], in the same order.

    All alike, save where a benchmark publishes a mean over categories.
    """
    benchmark, items = str(answers["benchmark"].iloc[0]), sorted(answers["item_id"].unique())
    return np.array(published_weights(benchmark, items))


def check_same_items(ours: pd.DataFrame, theirs: pd.DataFrame, where: str) -> None:
    """ArtifactError unless both settings answered the same items, as pairing them needs."""
    different = set(ours["item_id"]) ^ set(theirs["item_id"])
    if different:
        raise ArtifactError(
            f"{where}: {len(different)} items, {min(different)} among them, were answered by only "
            "one of this decoder and the full one, so they cannot be paired. Run generate_answers "
            "and grade_answers again for both with the same evaluation.num_items."
        )
