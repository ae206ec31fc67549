"""What repeated runs of one setting say together.

Legend: I items, R runs.
"""

import numpy as np


def accuracy_by_run(correct_IR: np.ndarray, weights_I: np.ndarray) -> np.ndarray:
    """Weighted share of right answers of each run, [R]."""
    return weights_I @ correct_IR / weights_I.sum()


def mean_and_deviation(accuracy_R: np.ndarray) -> tuple[float, float]:
    """Mean over runs and sample standard deviation (n - 1), which is NaN for one run.

    SlimWise, table 4.
    """
    deviation = accuracy_R.std(ddof=1) if len(accuracy_R) > 1 else np.nan
    return float(accuracy_R.mean()), float(deviation)
