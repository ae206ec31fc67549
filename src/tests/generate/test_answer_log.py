import json
import os

import pytest

from slimwise.core.vocabulary import Decoding, ServingMode
from slimwise.errors import ArtifactError
from slimwise.generate.answer_log import AnswerLog
from slimwise.generate.questions import QuestionKey


def key(item: int) -> QuestionKey:
    return QuestionKey(ServingMode.FULL, "mini_maths", str(item), Decoding.SAMPLED, 1)


def row(item: int) -> dict:
    return {**key(item)._asdict(), "content": f"{item} \u2713\n" * item}


@pytest.fixture
def path(tmp_path):
    """A log of three answers."""
    with AnswerLog(tmp_path / "answers.jsonl") as log:
        for item in range(3):
            log.append(key(item), row(item))
    return tmp_path / "answers.jsonl"


def test_answers_come_back_whatever_their_order(path):
    with AnswerLog(path) as log:
        log.append(key(3), row(3))
        assert [log.row(key(item)) for item in (3, 0, 2, 1)] == [row(item) for item in (3, 0, 2, 1)]
        assert key(4) not in log
        assert len(log) == 4


@pytest.mark.parametrize("kept_bytes", [1, 30])
def test_a_torn_last_line_is_asked_again(path, kept_bytes):
    content = path.read_bytes()
    last = content.rindex(b"\n", 0, -1) + 1
    path.write_bytes(content[: last + kept_bytes])
    with AnswerLog(path) as log:
        assert len(log) == 2
        log.append(key(2), row(2))
    assert path.read_bytes() == content


def test_a_line_of_another_kind_is_named(path):
    path.write_text('{"mode": "full"}\n' + path.read_text())
    with pytest.raises(ArtifactError, match="holds a line that is no answer"):
        AnswerLog(path)


def test_an_answer_is_on_the_disk_when_append_returns(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(path.read_bytes()))
    with AnswerLog(path) as log:
        log.append(key(3), row(3))
    (content,) = synced
    assert json.loads(content.splitlines()[-1]) == row(3)


def test_a_full_disk_leaves_the_log_as_it_was(path, monkeypatch):
    content = path.read_bytes()

    def fail(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with AnswerLog(path) as log, pytest.raises(ArtifactError, match="No space left"):
        log.append(key(3), row(3))
    assert path.read_bytes() == content
