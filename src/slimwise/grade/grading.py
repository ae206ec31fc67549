"""Verdicts on saved answers."""

import json
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from slimwise.artifacts.grades import COLUMNS
from slimwise.backbones.mini.chat import split_thought
from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.base import Answer, ToolCall
from slimwise.benchmarks.registry import benchmark_named

_BUDGET_REACHED = "length"


def grade_samples(samples: pd.DataFrame) -> pd.DataFrame:
    """One row of grades for each row of samples, in the same order.

    An answer that was cut by the budget is wrong, whatever it says so far; so is one whose
    thought never ended. Only the text after the thought is graded.
    """
    rows = []
    for sample in samples.to_dict("records"):
        verdict = _verdict(sample)
        rows.append(
            {key: sample[key] for key in COLUMNS if key in sample}
            | {
                "correct": verdict.correct,
                "hit_budget": sample["finish_reason"] == _BUDGET_REACHED,
                "extracted": verdict.extracted,
                "reason": verdict.reason,
                "findings": json.dumps(verdict.findings, sort_keys=True),
            }
        )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _verdict(sample: Mapping[Hashable, Any]) -> Verdict:
    if sample["finish_reason"] == _BUDGET_REACHED:
        return Verdict(False, "", "cut by the budget")
    content = sample["content"]
    text = content if sample["thought_split"] else split_thought(content)[1]
    if text is None:
        return Verdict(False, "", "the thought never ended")
    calls = tuple(ToolCall(**call) for call in json.loads(sample["tool_calls"]))
    benchmark = benchmark_named(sample["benchmark"])
    return benchmark.grade(Answer(text, calls), json.loads(sample["reference"]))
