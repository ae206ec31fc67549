"""What is left when something is killed in the middle of a job, and what the next command does."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from slimwise.artifacts.samples import read_samples

from .scratch_clone import LiveRun, ScratchClone, wait_until

pytestmark = pytest.mark.faults

_STAGE = "slimwise.cli generate-answers"
_SERVER = "slimwise_vllm.server"


@pytest.fixture
def answering(clone: ScratchClone, pruned_answers: Path) -> LiveRun:
    """A run whose server has answered three questions of 24."""
    run = clone.start(pruned_answers)
    wait_until(lambda: len(_logged(clone)) >= 3, "three answers")
    return run


def _logged(clone: ScratchClone) -> list[dict[str, object]]:
    logs = clone.paths.work("generate/reap-m32").glob("answers-*.jsonl")
    lines = [line for log in logs for line in log.read_bytes().splitlines(keepends=True)]
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def _kill(processes: list[int]) -> None:
    for process in processes:
        os.kill(process, signal.SIGKILL)


def _kept(samples: Path, logged: list[dict[str, object]]) -> int:
    """How many of the logged answers stand in the file as they were given, timing and all."""
    rows = read_samples(samples).to_dict("records")
    return sum(any(answer.items() <= row.items() for row in rows) for answer in logged)


_FAULTS: dict[str, Callable[[ScratchClone, LiveRun], None]] = {
    "kill -9 of the workflow engine": lambda _, run: run.signal(signal.SIGKILL),
    "kill -9 of a job": lambda clone, _: _kill(clone.processes(_STAGE)),
    "kill -9 of a vLLM server": lambda clone, _: _kill(clone.processes(_SERVER)),
    "Ctrl-C of the launcher": lambda _, run: run.interrupt(),
}
_MESSAGES = {
    "kill -9 of the workflow engine": "the last run was killed",
    "kill -9 of a job": "Killed",
    "kill -9 of a vLLM server": "slimwise: the server was gone",
    "Ctrl-C of the launcher": "slimwise: stopped; the same command resumes.",
}


@pytest.mark.parametrize("name", _FAULTS)
def test_a_kill_loses_no_answer_and_leaves_no_process(
    clone, pruned_answers, answering, fault, name
):
    expected = "no process is left; the next command finishes and asks nothing twice"
    with fault(name, expected) as row:
        _FAULTS[name](clone, answering)
        ended = answering.finished()
        seconds = clone.seconds_until_alone()
        logged = _logged(clone)
        row.seen = f"status {ended.status}, no process left after {seconds:.1f} s, "
        assert ended.status != 0
        assert not pruned_answers.exists()
        mended = clone.run(pruned_answers)
        row.message = (ended + mended).line(_MESSAGES[name])
        row.mended_by(mended)
        row.seen += f"{_kept(pruned_answers, logged)} of {len(logged)} answers kept"
        assert _kept(pruned_answers, logged) == len(logged)


def test_a_terminated_engine_ends_its_jobs_first(clone, pruned_answers, answering, fault):
    expected = "the running job ends and nothing new begins; the next command goes on"
    with fault("SIGTERM of the launcher", expected) as row:
        answering.signal(signal.SIGTERM)
        ended = answering.finished()
        seconds = clone.seconds_until_alone()
        row.seen = f"status {ended.status}, no process left after {seconds:.1f} s"
        row.message = ended.line("Will exit after finishing")
        row.mended_by(clone.run(pruned_answers))


def test_a_second_engine_is_refused_and_the_first_goes_on(clone, pruned_answers, fault):
    expected = "the second is refused and disturbs nothing; the first finishes"
    with fault("two engines on one results folder", expected) as row:
        running = clone.start(pruned_answers)
        clone.wait_for_processes(_STAGE)
        second = clone.run(pruned_answers)
        assert second.status != 0
        row.message = second.line("another run")
        first = running.finished()
        row.seen = f"second: status {second.status}; first: status {first.status}"
        row.mended_by(clone.run(pruned_answers))
