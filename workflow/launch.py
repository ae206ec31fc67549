"""Builds the environment where it is missing, then runs what is asked in it. Stdlib only.

python3 workflow/launch.py run [snakemake words]
python3 workflow/launch.py test [pytest words]
python3 workflow/launch.py slimwise [words of the slimwise command]
"""

import argparse
import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "slimwise_stamp.json"
SETUP_RECORD = VENV / "slimwise_setup.json"
PROFILE = ROOT / "workflow" / "profiles" / "default"
ENGINE_STATE = ROOT / ".snakemake"

OLDEST_PYTHON = (3, 11)
GPU_LOCK_PYTHON = (3, 12)
TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
ORPHAN_WAIT_S = 60


def main() -> None:
    """Build what is missing, then become the workflow engine, the tests or the command line."""
    arguments, words = _parser().parse_known_args()
    if sys.version_info < OLDEST_PYTHON:
        _refuse(f"Python {platform.python_version()} is too old: SlimWise needs 3.11 or newer.")
    _ensure_environment(arguments.accelerator)
    os.chdir(ROOT)
    if arguments.command == "test":
        _become("-m", "pytest", "-m", "not gpu and not proof and not faults and not slurm", *words)
    if arguments.command == "slimwise":
        _become("-m", "slimwise.cli", *words)
    _clear_killed_run()
    _date_back()
    os.environ["SLIMWISE_ENGINE"] = f"{platform.node()}:{os.getpid()}"
    cores = [] if _says_where_jobs_run(words) else ["--cores", "all"]
    _become("-m", "snakemake", "--workflow-profile", str(PROFILE), *cores, *words)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Build the environment where it is missing, then run what is asked in it.",
        epilog="Further words go to snakemake (run), pytest (test) or the slimwise command.",
        allow_abbrev=False,
        # Behind a command, the help asked for is that of the program that it becomes.
        add_help=sys.argv[1:2] in (["-h"], ["--help"]),
    )
    parser.add_argument("command", choices=["run", "test", "slimwise"])
    parser.add_argument(
        "--accelerator",
        choices=["cpu", "cuda"],
        default="cuda" if shutil.which("nvidia-smi") else "cpu",
        help="which packages to install; cuda where an NVIDIA driver is found",
    )
    return parser


def _says_where_jobs_run(words: list[str]) -> bool:
    """Whether the words name cores or jobs, or a profile that does."""
    names = ("--cores", "--jobs", "--profile")
    return any(word.partition("=")[0] in names or word.startswith(("-c", "-j")) for word in words)


def _ensure_environment(accelerator: str) -> None:
    """Install what the lock and pyproject.toml ask, unless the stamp says it is there."""
    wanted = _stamp(accelerator)
    if _installed() == wanted:
        return
    with _held(ROOT / ".venv.lock"):
        present = _installed()
        if present == wanted:
            return
        started = time.monotonic()
        STAMP.unlink(missing_ok=True)
        _make_venv(present, wanted)
        _install(accelerator)
        seconds = time.monotonic() - started
        SETUP_RECORD.write_text(json.dumps({"seconds": round(seconds, 1)}), encoding="utf-8")
        STAMP.write_text(json.dumps(wanted), encoding="utf-8")
        print(f"environment ready after {seconds:.0f} s", file=sys.stderr)


def _stamp(accelerator: str) -> dict[str, str]:
    files = (_lock(accelerator), ROOT / "pyproject.toml")
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return {"digest": digest, "root": str(ROOT), "python": platform.python_version()}


def _lock(accelerator: str) -> Path:
    return ROOT / "envs" / ("gpu.lock.txt" if accelerator == "cuda" else "cpu.lock.txt")


def _installed() -> dict[str, str] | None:
    try:
        return json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _make_venv(present: dict[str, str] | None, wanted: dict[str, str]) -> None:
    """A virtual environment of this Python at this place; an interrupted one is continued."""
    # Scripts in it name their interpreter by its full path, so a moved checkout starts anew.
    moved = present is not None and any(present[key] != wanted[key] for key in ("root", "python"))
    if not moved and _runs(PYTHON, "-m", "pip", "--version"):
        return
    try:
        venv.create(VENV, clear=True, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        _refuse(f"{VENV} cannot be made: {failure}. Debian and Ubuntu need python3-venv for it.")


def _install(accelerator: str) -> None:
    if accelerator == "cpu":
        _install_cpu_torch()
    elif sys.version_info[:2] != GPU_LOCK_PYTHON:
        _refuse("envs/gpu.lock.txt is for Python 3.12: call this script with python3.12.")
    if not _pip("--no-deps", "-r", str(_lock(accelerator))):
        _refuse("the set-up is not complete. Mend the cause above, then run the same command.")
    # setuptools is in the lock: the project is built with it, not with a download of its own.
    if not _pip("--no-deps", "--no-build-isolation", "-e", str(ROOT)):
        _refuse("the project itself could not be installed; the cause is above.")


def _install_cpu_torch() -> None:
    """torch first and alone: PyPI has only its CUDA build, which other packages would pull in."""
    lines = _lock("cpu").read_text(encoding="utf-8").splitlines()
    pin = next(line for line in lines if line.startswith("torch=="))
    attempts = (
        (f"{pin}+cpu", "--no-deps"),  # a configured index or folder has it
        (f"{pin}+cpu", "--no-deps", "--extra-index-url", TORCH_CPU_INDEX),
        (pin,),
    )
    if not any(_pip(*attempt) for attempt in attempts):
        _refuse(f"{pin} could not be installed; the cause is above.")


def _pip(*words: str) -> bool:
    print("pip install", *words, file=sys.stderr)
    command = ("-m", "pip", "install", "--disable-pip-version-check", "-q", *words)
    return subprocess.run([PYTHON, *command], check=False).returncode == 0


def _runs(*command: str | Path) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """One process at a time in the block; a second one waits."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for another set-up of {ROOT}", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _clear_killed_run() -> None:
    """Unlock what a killed run left locked, once its jobs have ended.

    Every run shares a lock that the kernel drops when the run dies, however it dies. Where nobody
    else shares it, the workflow engine's own locks are stale.
    """
    ENGINE_STATE.mkdir(exist_ok=True)
    run_lock = os.open(ENGINE_STATE / "slimwise_run.lock", os.O_RDWR | os.O_CREAT, 0o644)
    os.set_inheritable(run_lock, True)
    try:
        fcntl.flock(run_lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print(
            f"another run is going on in {ROOT}: if this one would make the same files, it is "
            "refused. Then wait, or end the other; --unlock would let them spoil each other.",
            file=sys.stderr,
        )
    else:
        stale = list((ENGINE_STATE / "locks").glob("*.lock"))
        if stale:
            print("the last run was killed: waiting for its jobs to end", file=sys.stderr)
            _wait_for_jobs(time.monotonic() + ORPHAN_WAIT_S)
        for lock in stale:
            lock.unlink(missing_ok=True)
    fcntl.flock(run_lock, fcntl.LOCK_SH)


def _date_back() -> None:
    """Give results that a wrong clock dated in the future the time of now.

    The workflow engine refuses to make anything of them until that time has come.
    """
    now = time.time()
    num_dated = 0
    for path in (ROOT / "results").rglob("*"):
        with suppress(OSError):  # gone by another run's hand, or not ours to date
            if path.lstat().st_mtime > now:
                os.utime(path, (now, now), follow_symlinks=False)
                num_dated += 1
    if num_dated:
        print(f"{num_dated} results were dated in the future: dated back to now", file=sys.stderr)


def _wait_for_jobs(deadline: float) -> None:
    """Return when no job holds its work directory, or at the deadline: the job itself refuses."""
    for path in (ROOT / "results").glob("*/work/**/.lock"):
        with path.open() as lock:
            while not _is_free(lock.fileno()) and time.monotonic() < deadline:
                time.sleep(0.2)


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _become(*words: str) -> NoReturn:
    """Replace this process, so that signals and the exit status are the program's own."""
    os.environ["PATH"] = f"{VENV / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    os.environ["VIRTUAL_ENV"] = str(VENV)
    os.execv(PYTHON, [str(PYTHON), *words])


def _refuse(reason: str) -> NoReturn:
    sys.exit(f"launch.py: {reason}")


if __name__ == "__main__":
    main()
