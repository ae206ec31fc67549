import pandas as pd
import pytest

from slimwise.artifacts.grades import COLUMNS, read_grades, write_grades
from slimwise.artifacts.row_types import conform_rows
from slimwise.artifacts.samples import read_samples
from slimwise.core.vocabulary import Decoding
from slimwise.errors import ArtifactError
from slimwise.provenance import Provenance

PROVENANCE = Provenance("abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores", {}, "pytest")
GRADE = {
    "decoder": "full",
    "mode": "full",
    "deployment": "colocated",
    "benchmark": "mini_maths",
    "item_id": "7",
    "run": 0,
    "decoding": Decoding.GREEDY,
    "correct": True,
    "hit_budget": False,
    "completion_tokens": 40,
    "extracted": "",
    "reason": "",
    "findings": "{}",
}


def test_grades_come_back_as_they_were_written(tmp_path):
    frame = pd.DataFrame([GRADE, GRADE | {"correct": False, "reason": "wrong value"}])
    write_grades(tmp_path / "grades.parquet", frame, PROVENANCE)
    read = read_grades(tmp_path / "grades.parquet")
    assert read.to_dict("records") == frame.to_dict("records")
    assert list(read) == list(COLUMNS)


def test_an_empty_frame_keeps_its_types(tmp_path):
    write_grades(tmp_path / "grades.parquet", pd.DataFrame(columns=list(COLUMNS)), PROVENANCE)
    assert read_grades(tmp_path / "grades.parquet")["correct"].dtype == bool


@pytest.mark.parametrize(
    ("column", "value"), [("correct", "yes"), ("run", 0.5), ("item_id", 7), ("reason", None)]
)
def test_another_type_is_refused_by_column(column, value):
    with pytest.raises(ArtifactError, match=f"column {column}"):
        conform_rows(pd.DataFrame([GRADE | {column: value}]), COLUMNS, "grades")


def test_a_missing_column_is_named():
    frame = pd.DataFrame([GRADE]).drop(columns="reason")
    with pytest.raises(ArtifactError, match="columns reason are missing"):
        conform_rows(frame, COLUMNS, "grades")


def test_grades_are_not_samples(tmp_path):
    write_grades(tmp_path / "grades.parquet", pd.DataFrame([GRADE]), PROVENANCE)
    with pytest.raises(ArtifactError, match=r"slimwise\.samples/2"):
        read_samples(tmp_path / "grades.parquet")
