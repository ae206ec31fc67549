"""The answers on which two comparisons disagree, listed for a reader to judge."""

import json
from pathlib import Path

import pandas as pd

from slimwise.artifacts.atomic import atomic_file
from slimwise.benchmarks.maths.grading import disagree

_COLUMNS = ["benchmark", "item_id", "mode", "decoding", "run", "correct", "extracted", "findings"]


def write_disagreements(path: Path, samples: pd.DataFrame, grades: pd.DataFrame) -> int:
    """Write a CSV file of them, with the gold answer; their number. Rows are in equal order."""
    disputed = [disagree(json.loads(text)) for text in grades["findings"]]
    rows = grades.loc[disputed, _COLUMNS].assign(reference=samples.loc[disputed, "reference"])
    with atomic_file(path) as temporary:
        rows.to_csv(temporary, index=False, lineterminator="\n")
    return len(rows)
