import pandas as pd
import pytest

from slimwise.artifacts.tables import read_table, write_table
from slimwise.errors import ArtifactError

COLUMNS = ("stage", "seconds", "jobs")


@pytest.fixture
def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "stage": ["a|b", "none"],
            "seconds": [1 / 3, None],
            "jobs": [1234567, 2],
            "commit": ["12e4567", "0000123"],
            "date": "2026-11-30T07:00:00+00:00",
            "hardware": "CPU, 2 cores",
        }
    )


def test_csv_round_trip_keeps_text_and_missing_values(tmp_path, frame):
    write_table(tmp_path / "times.csv", frame, COLUMNS, digits=6)
    read = read_table(tmp_path / "times.csv", COLUMNS)
    assert list(read["stage"]) == ["a|b", "none"]
    assert list(read["commit"]) == ["12e4567", "0000123"]
    assert read["seconds"][0] == 0.333333
    assert read["seconds"].isna()[1]
    assert read["jobs"][0] == 1234567


def test_markdown_twin_holds_the_cells_of_the_csv(tmp_path, frame):
    write_table(tmp_path / "times.csv", frame, COLUMNS, digits=3)
    cells = pd.read_csv(tmp_path / "times.csv", dtype=str, keep_default_na=False)
    header, rule, *rows = (tmp_path / "times.md").read_text().splitlines()
    assert header == f"| {' | '.join(cells.columns)} |"
    assert rule == "| --- | ---: | ---: | --- | --- | --- |"
    expected = ["| " + " | ".join(row).replace("a|b", "a\\|b") + " |" for row in cells.to_numpy()]
    assert rows == expected
    assert "0.333 " in rows[0]


def test_empty_table_keeps_its_header(tmp_path, frame):
    write_table(tmp_path / "times.csv", frame[:0], COLUMNS, digits=6)
    assert read_table(tmp_path / "times.csv", COLUMNS).empty
    assert len((tmp_path / "times.md").read_text().splitlines()) == 2


def test_rows_without_provenance_are_refused(tmp_path, frame):
    with pytest.raises(ArtifactError, match="expected stage, seconds, jobs, commit, date"):
        write_table(tmp_path / "times.csv", frame.drop(columns="date"), COLUMNS, digits=6)
    assert not list(tmp_path.iterdir())


def test_missing_or_foreign_table_is_refused(tmp_path, frame):
    with pytest.raises(ArtifactError, match="cannot read table"):
        read_table(tmp_path / "absent.csv", COLUMNS)
    write_table(tmp_path / "times.csv", frame, COLUMNS, digits=6)
    with pytest.raises(ArtifactError, match="expected stage, commit"):
        read_table(tmp_path / "times.csv", ("stage",))


def test_a_note_ends_the_markdown_only(tmp_path, frame):
    write_table(tmp_path / "times.csv", frame, COLUMNS, digits=6, note="Read with care.")
    assert (tmp_path / "times.md").read_text().endswith(" |\n\nRead with care.\n")
    assert len(read_table(tmp_path / "times.csv", COLUMNS)) == len(frame)
