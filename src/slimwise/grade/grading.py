"""Verdicts on saved answers."""

import json

import pandas as pd

from slimwise.artifacts.grades import COLUMNS
from slimwise.backbones.mini.chat import split_thought
from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.registry import benchmark_named

_BUDGET_REACHED = "length"
_GRADED_BY = ("benchmark", "content", "finish_reason", "reference")


def grade_samples(samples: pd.DataFrame) -> pd.DataFrame:
    """One row of grades for each row of samples, in the same order.

    An answer that was cut by the budget is wrong, whatever it says so far; so is one whose
    thought never ended. Only the text after the thought is graded.
    """
    rows = []
    for sample in samples.to_dict("records"):
        verdict = _verdict(**{key: sample[key] for key in _GRADED_BY})
        rows.append(
            {key: sample[key] for key in COLUMNS if key in sample}
            | {
                "correct": verdict.correct,
                "hit_budget": sample["finish_reason"] == _BUDGET_REACHED,
                "extracted": verdict.extracted,
                "reason": verdict.reason,
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _verdict(benchmark: str, content: str, finish_reason: str, reference: str) -> Verdict:
    _, answer = split_thought(content)
    if finish_reason == _BUDGET_REACHED:
        return Verdict(False, "", "cut by the budget")
    if answer is None:
        return Verdict(False, "", "the thought never ended")
    return benchmark_named(benchmark).grade(answer, json.loads(reference))
