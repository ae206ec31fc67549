"""Verdicts on saved answers."""

import json
from collections.abc import Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pandas as pd

from slimwise.artifacts.grades import COLUMNS, UNENDED_THOUGHT
from slimwise.backbones.mini.chat import split_thought
from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.base import Answer, Grade, ToolCall
from slimwise.benchmarks.registry import benchmark_named
from slimwise.benchmarks.settings import GradingLimits
from slimwise.benchmarks.tool_calls.categories import MEANS

_BUDGET_REACHED = "length"

Sample = Mapping[Hashable, Any]
"""A row of samples.parquet."""


def grade_samples(samples: pd.DataFrame, limits: GradingLimits) -> pd.DataFrame:
    """One row of grades for each row of samples, in the same order.

    An answer that was cut by the budget is wrong, whatever it says so far; so is one whose
    thought never ended. Only the text after the thought is graded. GradingError or SandboxError
    if a grader cannot work here.
    """
    samples = samples.reset_index(drop=True)
    verdicts: dict[Hashable, Verdict] = {}
    for name, rows in samples.groupby("benchmark"):
        verdicts |= _verdicts(str(name), rows, limits)
    grades = [
        _row(sample, verdicts[index]) for index, sample in enumerate(samples.to_dict("records"))
    ]
    return pd.DataFrame(grades, columns=list(COLUMNS))


def _verdicts(
    benchmark: str, samples: pd.DataFrame, limits: GradingLimits
) -> dict[Hashable, Verdict]:
    """Verdicts by the samples' index."""
    # Answers to one item after another: graders keep what an item's tests gave.
    samples = samples.sort_values("item_id", kind="stable")
    references = {text: json.loads(text) for text in samples["reference"].unique()}
    grader = benchmark_named(benchmark).grader(list(references.values()), limits)
    with grader as grade, ThreadPoolExecutor(limits.workers) as pool:

        def verdict(sample: Sample) -> Verdict:
            return _verdict(sample, references[sample["reference"]], grade)

        return dict(zip(samples.index, pool.map(verdict, samples.to_dict("records")), strict=True))


def _verdict(sample: Sample, reference: Mapping[str, Any], grade: Grade) -> Verdict:
    if sample["finish_reason"] == _BUDGET_REACHED:
        return Verdict(False, "", "cut by the budget")
    text = _text_after_thought(sample)
    if text is None:
        return Verdict(False, "", UNENDED_THOUGHT)
    calls = tuple(ToolCall(**call) for call in json.loads(sample["tool_calls"]))
    return grade(Answer(text, calls), reference)


def _text_after_thought(sample: Sample) -> str | None:
    """What the answer says once its thought has ended; None if the thought never ended."""
    content = sample["content"]
    if not sample["thought_split"]:
        return split_thought(content)[1]
    if content.strip() or not sample["reasoning"] or sample["benchmark"] in MEANS:
        return content
    # A parser does not say that a thought never ended, but then leaves no content. It leaves none
    # of a call that it cannot read either, which the grader of calls judges.
    return None


def _row(sample: Sample, verdict: Verdict) -> dict[str, Any]:
    return {key: sample[key] for key in COLUMNS if key in sample} | {
        "correct": verdict.correct,
        "hit_budget": sample["finish_reason"] == _BUDGET_REACHED,
        "extracted": verdict.extracted,
        "reason": verdict.reason,
        "findings": json.dumps(verdict.findings, sort_keys=True),
    }
