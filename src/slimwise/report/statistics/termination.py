"""How answers end: by themselves, in the middle of a thought, or cut by the budget."""

import pandas as pd

from slimwise.artifacts.grades import UNENDED_THOUGHT


def budget_hit_rate(answers: pd.DataFrame) -> float:
    """Share of answers that the token budget cut, from rows of grades."""
    return float(answers["hit_budget"].mean())


def termination_rate(answers: pd.DataFrame) -> float:
    """Share of answers that ended their thought and then themselves, right or wrong.

    Less than 1 - budget_hit_rate where a model stops in the middle of its thought.
    """
    unended = answers["hit_budget"] | (answers["reason"] == UNENDED_THOUGHT)
    return float(1 - unended.mean())
