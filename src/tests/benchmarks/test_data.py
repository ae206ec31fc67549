import json

import pytest

from slimwise.benchmarks.data import DataSource, read_data
from slimwise.errors import ConfigError

ROWS = [{"question": "1+1?", "answer": "2", "note": "unused"}, {"answer": "4", "question": "2+2?"}]
SOURCE = DataSource("owner/sums", "0123abc", "test", "sums/test.jsonl", 2, ("question", "answer"))


@pytest.fixture(autouse=True)
def _forget():
    """Every test writes other rows to the same paths."""
    read_data.cache_clear()


@pytest.fixture
def folder(tmp_path):
    """A function that writes lines to the source's local file and returns the data folder."""

    def write(*lines: str):
        path = tmp_path / SOURCE.local
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines))
        return tmp_path

    return write


@pytest.fixture
def hub(monkeypatch):
    """The hub's client: every call's arguments, and rows or an error to answer with."""
    import datasets

    calls, replies = [], []

    def load_dataset(*arguments, **options):
        calls.append((arguments, options))
        if isinstance(replies[0], Exception):
            raise replies[0]
        return replies[0]

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    return calls, replies


def test_only_the_columns_that_are_read_are_kept(folder):
    read = read_data(SOURCE, folder(*map(json.dumps, ROWS)))
    assert read.rows == ({"question": "1+1?", "answer": "2"}, {"question": "2+2?", "answer": "4"})


def test_only_a_line_feed_ends_a_row(folder):
    row = {**ROWS[0], "answer": "2\u2028\x85"}
    lines = [json.dumps(each, ensure_ascii=False) for each in (row, ROWS[1])]
    assert read_data(SOURCE, folder(*lines)).rows[0]["answer"] == "2\u2028\x85"


def test_the_hub_is_asked_for_the_fixed_revision(hub):
    calls, replies = hub
    replies.append(ROWS)
    read = read_data(SOURCE, None)
    assert calls == [(("owner/sums", None), {"split": "test", "revision": "0123abc"})]
    assert str(read).startswith("owner/sums@0123abc sha256:")


def test_equal_content_has_one_digest_wherever_it_lies(folder, hub):
    hub[1].append(ROWS)
    first = read_data(SOURCE, folder(*map(json.dumps, ROWS)))
    assert first.sha256 == read_data(SOURCE, None).sha256
    read_data.cache_clear()
    changed = [ROWS[0], {"question": "2+2?", "answer": "5"}]
    assert first.sha256 != read_data(SOURCE, folder(*map(json.dumps, changed))).sha256


def test_a_hub_that_cannot_be_reached_names_the_local_file(hub):
    hub[1].append(ConnectionError("no route"))
    with pytest.raises(ConfigError, match=r"0123abc.*no route.*data_folder.*sums/test\.jsonl"):
        read_data(SOURCE, None)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"data_folder: .*sums/test\.jsonl cannot be read"):
        read_data(SOURCE, tmp_path)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"question": "1+1?"'], "line 1 is not JSON"),
        (['{"question": "1+1?"}', "{}"], "row 0 has no answer; expected question, answer"),
        (["[1]", "{}"], "row 0 has no question, answer"),
        ([json.dumps(ROWS[0])], "has 1 rows, expected 2"),
        ([json.dumps(row) for row in ROWS * 2], "has 4 rows, expected 2"),
    ],
)
def test_a_damaged_file_is_refused(folder, lines, message):
    with pytest.raises(ConfigError, match=message):
        read_data(SOURCE, folder(*lines))
