"""A program that cannot watch its parent ends with it all the same."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

CHILD = (sys.executable, "-m", "slimwise.engine.child")


def test_the_program_ends_when_its_parent_is_killed_though_it_ignores_sigterm(tmp_path):
    named = tmp_path / "child"
    program = ["sh", "-c", "trap '' TERM; exec sleep 600"]
    source = (
        "import os, subprocess, sys, time; "
        f"child = subprocess.Popen([*{list(CHILD)!r}, str(os.getpid()), *{program!r}]); "
        f"open({str(named)!r}, 'w').write(str(child.pid)); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", source])
    child = wait_for_program(named, "sleep")
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}").exists() and " Z " not in Path(f"/proc/{child}/stat").read_text():
        assert time.monotonic() < deadline, "the program outlives its parent"
        time.sleep(0.05)


def wait_for_program(named: Path, program: str) -> int:
    """The process that the file names, once it has become the program."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        text = named.read_text() if named.exists() else ""
        if text and Path(f"/proc/{text}/comm").read_text().strip() == program:
            return int(text)
        time.sleep(0.05)
    raise AssertionError(f"no {program} was started")


def test_a_parent_that_has_ended_already_is_told():
    outcome = subprocess.run(
        [*CHILD, "1", "sleep", "600"], capture_output=True, text=True, timeout=20, check=False
    )
    assert outcome.returncode != 0
    assert "process 1, which started sleep, has ended" in outcome.stderr
