"""What repeated runs of one setting say together."""

import numpy as np


def mean_and_deviation(accuracy_R: np.ndarray) -> tuple[float, float]:
    """Mean over runs and sample standard deviation (n - 1), which is NaN for one run.

    Legend: R runs. SlimWise, table 4.
    """
    deviation = accuracy_R.std(ddof=1) if len(accuracy_R) > 1 else np.nan
    return float(accuracy_R.mean()), float(deviation)
