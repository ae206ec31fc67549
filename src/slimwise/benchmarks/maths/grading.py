"""Grades solutions by their final answers; a comparison that hangs costs its item, not the run."""

import json
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from queue import Queue
from typing import Any, Self

from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.base import Answer, Grade
from slimwise.benchmarks.maths.final_answer import as_latex, final_answer
from slimwise.benchmarks.settings import GradingLimits
from slimwise.errors import GradingError

_WORKER = "slimwise.benchmarks.maths.worker"
MATH_VERIFY, SAME_VALUES = "math_verify", "same_values"
"""Findings: what the first and the second comparison said."""
_START_S = 120.0  # importing the algebra takes seconds, on a busy machine many


@contextmanager
def maths_grader(limits: GradingLimits) -> Iterator[Grade]:
    """Verdicts by as many workers as answers are graded at once; references hold the answer."""
    idle: Queue[MathsGrader] = Queue()
    with ExitStack() as stack:
        for _ in range(limits.workers):
            idle.put(stack.enter_context(MathsGrader(limits.maths_timeout_s)))

        def grade(answer: Answer, reference: Mapping[str, Any]) -> Verdict:
            worker = idle.get()
            try:
                return worker.grade(answer.text, reference["answer"])
            finally:
                idle.put(worker)

        yield grade


def disagree(findings: Mapping[str, bool]) -> bool:
    """True if both comparisons spoke, and the second overruled the first."""
    return SAME_VALUES in findings and findings[MATH_VERIFY] != findings[SAME_VALUES]


class MathsGrader:
    """A worker process that compares, and is replaced when it takes too long over one pair."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._worker: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def grade(self, solution: str, gold: str) -> Verdict:
        """The verdict on the text after the thought; an empty gold answer matches nothing.

        findings hold what each comparison said that had something to say. GradingError if no
        worker can be started.
        """
        answer = final_answer(solution)
        if not gold.strip():
            return Verdict(False, answer, "the item has no gold answer")
        reply = self._compare(as_latex(gold), answer)
        if reply is None:
            self._stop()
            return Verdict(False, answer, f"not compared within {self._timeout_s:g} s")
        reason = "" if reply["equal"] else reply.get("reason", f"expected {gold}")
        spoke = [name for name in (MATH_VERIFY, SAME_VALUES) if reply.get(name) is not None]
        findings = {name: reply[name] for name in spoke}
        return Verdict(reply["equal"], answer, reason, findings)

    def _compare(self, gold: str, answer: str) -> dict[str, Any] | None:
        """The worker's reply, or None if it has none in time or died."""
        worker = self._started()
        assert worker.stdin is not None
        with suppress(BrokenPipeError):
            worker.stdin.write(json.dumps([gold, answer]) + "\n")
            worker.stdin.flush()
        line = _line(worker, self._timeout_s)
        return json.loads(line) if line else None

    def _started(self) -> "subprocess.Popen[str]":
        if self._worker is None:
            self._worker = subprocess.Popen(
                [sys.executable, "-m", _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            if not _line(self._worker, _START_S):
                self._stop()
                raise GradingError(
                    f"the process that compares answers did not start within {_START_S:g} s. "
                    f"`python -m {_WORKER}` shows why; free the CPU, or install the project again."
                )
        return self._worker

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker.communicate()
            self._worker = None


def _line(worker: "subprocess.Popen[str]", timeout_s: float) -> str:
    assert worker.stdout is not None
    ready, _, _ = select.select([worker.stdout], [], [], timeout_s)
    return worker.stdout.readline() if ready else ""
