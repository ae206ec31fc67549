import pytest

from slimwise.artifacts.json_rows import latest, read_json_rows
from slimwise.errors import ArtifactError

ORIGIN = '"commit": "abc1234", "date": "2026-11-30", "hardware": "CPU"'


def test_the_last_row_of_a_key_stands_and_keys_keep_their_order(tmp_path):
    path = tmp_path / "rows.jsonl"
    lines = [f'{{"name": "{name}", "value": {value}, {ORIGIN}}}' for name, value in ROWS]
    path.write_text("\n".join(lines) + "\n")
    found = latest(read_json_rows(path), ["name"])
    assert found[["name", "value"]].to_numpy().tolist() == [["b", 2], ["a", 3]]


ROWS = (("a", 1), ("b", 2), ("a", 3))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no rows"),
        ("{", "cannot read"),
        ("[1]\n", "line 1"),
        (f'{{{ORIGIN}}}\n{{"name": "no origin"}}\n', "line 2"),
    ],
)
def test_a_file_that_holds_no_rows_with_their_origin_is_refused(tmp_path, text, words):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    with pytest.raises(ArtifactError, match=words):
        read_json_rows(path)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match="Measure them again"):
        read_json_rows(tmp_path / "rows.jsonl")
