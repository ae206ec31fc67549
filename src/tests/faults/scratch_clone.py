"""A clone of the repository, in a folder of a difficult name, whose runs are real."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from slimwise.paths import StudyPaths

ROOT = Path(__file__).resolve().parents[3]
FOLDER_NAME = "slim wise \u00e9"
LONGEST_RUN_S = 1200
LONGEST_END_S = 90
"""Within which all that a killed run started must be gone: 10 s where the cores are free."""
_LONGEST_LINE = 300

# Few requests at a time: answers must still be coming in when something is killed.
_OVERLAY = "evaluation: {concurrency: 1}\nserving: {outage_timeout_s: 3}\n"
_PROGRAM = '#!/bin/sh\nexec "$(dirname "$0")/python" -m slimwise.cli "$@"\n'


@dataclass(frozen=True)
class Run:
    """A finished command: its words, its exit status and all that it printed."""

    command: str
    status: int
    output: str

    def __add__(self, other: "Run") -> "Run":
        """Both, as a user reads them one after the other."""
        return Run(f"{self.command}, {other.command}", other.status, self.output + other.output)

    def line(self, part: str) -> str:
        """The first printed line that holds the words; AssertionError if there is none."""
        for line in self.output.splitlines():
            if part in line:
                return line.strip()[:_LONGEST_LINE]
        raise AssertionError(f"{part!r} is not in what {self.command} printed:\n{self.output}")


@dataclass
class LiveRun:
    """A command that may still be running; it leads a process group, as at a terminal."""

    command: str
    process: subprocess.Popen[bytes]
    printed: Path

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def interrupt(self) -> None:
        """What Ctrl-C does at a terminal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def finished(self) -> Run:
        status = self.process.wait(LONGEST_RUN_S)
        text = self.printed.read_text("utf-8", errors="replace")
        return Run(self.command, status, text.replace(str(self.printed.parent / FOLDER_NAME), "."))


@dataclass(frozen=True)
class ScratchClone:
    """The clone, and a folder for what is not part of it."""

    root: Path
    aside: Path
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def paths(self) -> StudyPaths:
        return StudyPaths.of("smoke", self.root / "results")

    @property
    def commit(self) -> str:
        """What the clone's code is, which the faults are put into."""
        asked = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=self.root, capture_output=True, text=True, check=True
        )
        return asked.stdout.strip()

    def start(self, *words: str | Path) -> LiveRun:
        """The smoke study, or the files of it that the words name."""
        named = [self._relative(word) for word in words]
        overlay = self.aside / "overlay.yaml"
        overlay.write_text(_OVERLAY, encoding="utf-8")
        command = [sys.executable, "workflow/launch.py", "run", "--accelerator", "cpu", *named]
        printed = self.aside / f"printed-{time.monotonic_ns()}.txt"
        with printed.open("wb") as output:
            process = subprocess.Popen(
                [*command, "--configfile", "config/smoke.yaml", str(overlay)],
                cwd=self.root,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return LiveRun(" ".join(["launch.py run", *named]), process, printed)

    def run(self, *words: str | Path) -> Run:
        """The same, when it has ended."""
        return self.start(*words).finished()

    def processes(self, part: str = "") -> list[int]:
        """Living processes that work in the clone and whose command line holds the words."""
        return [process for process in map(int, _process_names()) if self._holds(process, part)]

    def wait_for_processes(self, part: str) -> list[int]:
        """The same, once there are any."""
        wait_until(lambda: bool(self.processes(part)), f"a process {part}")
        return self.processes(part)

    def seconds_until_alone(self) -> float:
        """How long it takes until no process works in the clone; AssertionError if too long."""
        return wait_until(lambda: not self.processes(), "all processes to end", LONGEST_END_S)

    def _relative(self, word: str | Path) -> str:
        return str(word.relative_to(self.root)) if isinstance(word, Path) else word

    def _holds(self, process: int, part: str) -> bool:
        folder = Path("/proc", str(process))
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
            return part.encode() in words and (folder / "cwd").readlink().is_relative_to(self.root)
        return False


def wait_until(is_so: Callable[[], bool], what: str, limit_s: float = LONGEST_RUN_S) -> float:
    """Seconds that it took; AssertionError names what did not happen."""
    start = time.monotonic()
    while not is_so():
        assert time.monotonic() < start + limit_s, f"waited {limit_s:g} s for {what}"
        time.sleep(0.05)
    return time.monotonic() - start


def scratch_clone(folder: Path) -> ScratchClone:
    """A clone of the last commit, with an environment that borrows this one's packages."""
    root = folder / FOLDER_NAME
    if not root.exists():
        subprocess.run(["git", "clone", "--quiet", ROOT, root], check=True)
        _make_environment(root)
    return ScratchClone(root, folder)


def _make_environment(root: Path) -> None:
    """What launch.py would build, in seconds: our packages, the clone's code."""
    launch = _launcher(root)
    venv.create(launch.VENV, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(launch.VENV)}))
    places = f"{root / 'src'}\n{sysconfig.get_path('purelib')}\n"
    (packages / "borrowed.pth").write_text(places, encoding="utf-8")
    program = launch.VENV / "bin" / "slimwise"
    program.write_text(_PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    launch.STAMP.write_text(json.dumps(launch._stamp("cpu")), encoding="utf-8")


def _launcher(root: Path) -> ModuleType:
    path = root / "workflow" / "launch.py"
    spec = importlib.util.spec_from_file_location("launch", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _process_names() -> Iterator[str]:
    return (path.name for path in Path("/proc").iterdir() if path.name.isdigit())


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    """The folder with something mounted on it until the block ends."""
    subprocess.run(["mount", *options, folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
