"""Grades a solution by its final answer; a comparison that hangs costs its item, not the run."""

import json
import select
import subprocess
import sys
from typing import Any, Self

from slimwise.backbones.mini.tasks.item import Verdict
from slimwise.benchmarks.maths.final_answer import as_latex, final_answer

_WORKER = "slimwise.benchmarks.maths.worker"


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
        """The verdict on the text after the thought; an empty gold answer matches nothing."""
        answer = final_answer(solution)
        if not gold.strip():
            return Verdict(False, answer, "the item has no gold answer")
        reply = self._compare(as_latex(gold), answer)
        if reply is None:
            self._stop()
            return Verdict(False, answer, f"not compared within {self._timeout_s:g} s")
        reason = "" if reply["equal"] else reply.get("reason", f"expected {gold}")
        return Verdict(reply["equal"], answer, reason)

    def _compare(self, gold: str, answer: str) -> dict[str, Any] | None:
        """The worker's reply, or None if it has none in time or died."""
        worker = self._started()
        assert worker.stdin is not None
        assert worker.stdout is not None
        worker.stdin.write(json.dumps([gold, answer]) + "\n")
        worker.stdin.flush()
        ready, _, _ = select.select([worker.stdout], [], [], self._timeout_s)
        line = worker.stdout.readline() if ready else ""
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
        return self._worker

    def _stop(self) -> None:
        if self._worker is not None:
            self._worker.kill()
            self._worker.communicate()
            self._worker = None
