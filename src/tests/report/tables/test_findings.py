import json

import pandas as pd
import pytest

from slimwise.report.tables.accuracy import accuracy_table
from slimwise.report.tables.columns import FINDING_COLUMNS
from slimwise.report.tables.findings import findings_table


def graded(benchmark, findings, decoding="sampled"):
    """Answers of the full decoder: a list of runs, each a list with one record an item."""
    rows = [
        {
            "decoder": "full",
            "mode": "full",
            "deployment": "colocated",
            "benchmark": benchmark,
            "decoding": decoding,
            "item_id": str(item),
            "run": run,
            "correct": True,
            "hit_budget": False,
            "completion_tokens": 10,
            "findings": json.dumps(record),
            "commit": "abc1234",
            "date": "2026-11-30",
            "hardware": "CPU",
        }
        for run, records in enumerate(findings)
        for item, record in enumerate(records)
    ]
    return pd.DataFrame(rows)


def findings(*parts):
    grades = pd.concat(parts, ignore_index=True)
    return findings_table(accuracy_table(grades, backbone="mini", num_experts=64), grades)


def test_shares_are_of_all_answers_also_of_those_no_grader_read():
    rows = findings(graded("mbpp_plus", [[{"task": True}, {}], [{"task": True}, {"task": True}]]))
    assert list(rows.columns[:-3]) == list(FINDING_COLUMNS)
    assert len(rows) == 1
    row = rows.iloc[0]
    assert (row["finding"], row["runs"], row["commit"]) == ("task", 2, "abc1234")
    # Runs at 0.5 and 1.
    assert row["share_mean"] == pytest.approx(0.75)
    assert row["share_std"] == pytest.approx(0.125**0.5)


def test_a_row_a_finding_and_setting_by_name():
    rows = findings(
        graded("gsm8k", [[{}]]),
        graded("code", [[{"b": True, "a": False}]]),
        graded("code", [[{"b": False}]], decoding="greedy"),
    )
    named = rows[["decoding", "benchmark", "finding", "share_mean"]].to_numpy().tolist()
    assert named == [
        ["sampled", "code", "a", 0],
        ["sampled", "code", "b", 1],
        ["greedy", "code", "b", 0],
    ]


def test_without_findings_the_table_is_empty():
    rows = findings(graded("mini_maths", [[{}]]))
    assert rows.empty
    assert list(rows.columns[:-3]) == list(FINDING_COLUMNS)
