"""Faults are put into a real study, one after the other, and what is seen becomes a table.

A fault leaves the study finished, or as the fault after it needs it: the next command mends it.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd
import pytest

from slimwise.artifacts.tables import read_table, write_table
from slimwise.paths import StudyPaths
from slimwise.provenance import current_provenance

from .scratch_clone import ROOT, Run, ScratchClone, scratch_clone

_COLUMNS = ("fault", "expected", "seen", "message", "next_command", "passed")


@dataclass
class Fault:
    """A row of the table; message is what the user reads."""

    fault: str
    expected: str
    seen: str = ""
    message: str = ""
    next_command: str = ""
    passed: bool = False

    def mended_by(self, run: Run) -> None:
        """The command that followed; AssertionError shows its output if it failed."""
        self.next_command = f"{run.command}: status {run.status}"
        assert run.status == 0, run.output


@pytest.fixture
def fault(clone: ScratchClone) -> Callable[[str, str], AbstractContextManager[Fault]]:
    """A function that opens a row; it passes if its block does, and is written either way."""

    @contextmanager
    def opened(name: str, expected: str) -> Iterator[Fault]:
        row = Fault(name, expected)
        try:
            yield row
            row.passed = True
        except Exception as failure:
            row.seen = f"{row.seen} FAILED: {failure}"[:500]
            raise
        finally:
            _write(row, clone.commit)

    return opened


def _write(row: Fault, commit: str) -> None:
    """Put the row in the place of the one that an earlier session wrote of the fault."""
    path = StudyPaths.of("faults", ROOT / "results").table("faults")
    here = current_provenance()
    origin = {"commit": commit, "date": here.date, "hardware": here.hardware}
    rows = pd.DataFrame([asdict(row) | origin])
    if path.is_file():
        earlier = read_table(path, _COLUMNS)
        rows = pd.concat([earlier[earlier["fault"] != row.fault], rows], ignore_index=True)
    write_table(path, rows, _COLUMNS, digits=3)


@pytest.fixture(scope="session")
def clone(tmp_path_factory: pytest.TempPathFactory) -> ScratchClone:
    """The clone, with a pruned decoder's answers; SLIMWISE_FAULTS_FOLDER keeps it for next time."""
    named = os.environ.get("SLIMWISE_FAULTS_FOLDER")
    made = scratch_clone(Path(named) if named else tmp_path_factory.mktemp("faults"))
    finished = made.run(made.paths.grades("reap-m32"))
    assert finished.status == 0, finished.output
    return made


@pytest.fixture
def pruned_answers(clone: ScratchClone) -> Path:
    """A file of answers that is missing, so that a run which names it asks a server for them."""
    path = clone.paths.samples("reap-m32")
    path.unlink(missing_ok=True)
    return path
