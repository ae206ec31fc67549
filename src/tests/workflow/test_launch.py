import fcntl
import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

LAUNCH = Path(__file__).resolve().parents[3] / "workflow" / "launch.py"


@pytest.fixture
def launch(tmp_path, monkeypatch):
    """The module, with its repository in an empty folder whose name has a space."""
    spec = importlib.util.spec_from_file_location("launch", LAUNCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    root = tmp_path / "a tree"
    root.mkdir()
    for name in ("VENV", "PYTHON", "STAMP", "SETUP_RECORD", "ENGINE_STATE", "ROOT"):
        monkeypatch.setattr(module, name, root / getattr(module, name).relative_to(module.ROOT))
    (root / "envs").mkdir()
    (root / "envs" / "cpu.lock.txt").write_text("torch==1\n")
    (root / "pyproject.toml").touch()
    monkeypatch.setattr(module, "_make_venv", lambda *_: module.VENV.mkdir(exist_ok=True))
    return module


def test_an_unchanged_lock_installs_once(launch, monkeypatch):
    installs = []
    monkeypatch.setattr(launch, "_install", installs.append)
    for _ in range(2):
        launch._ensure_environment("cpu")
    assert installs == ["cpu"]
    (launch.ROOT / "envs" / "cpu.lock.txt").write_text("torch==2\n")
    launch._ensure_environment("cpu")
    assert installs == ["cpu", "cpu"]


def test_an_interrupted_set_up_is_taken_up_again(launch, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "_install", interrupt)
    with pytest.raises(KeyboardInterrupt):
        launch._ensure_environment("cpu")
    installs = []
    monkeypatch.setattr(launch, "_install", installs.append)
    launch._ensure_environment("cpu")
    assert installs == ["cpu"]


def test_torch_comes_first_and_from_the_first_source_that_has_it(launch, monkeypatch):
    asked = []

    def pip(*words):
        asked.append(words)
        return "--extra-index-url" in words

    monkeypatch.setattr(launch, "_pip", pip)
    launch._install_cpu_torch()
    assert [words[0] for words in asked] == ["torch==1+cpu", "torch==1+cpu"]


def test_locks_of_a_live_run_are_kept_and_it_is_named(launch, capsys):
    locks = launch.ENGINE_STATE / "locks"
    locks.mkdir(parents=True)
    stale = locks / "0.input.lock"
    stale.touch()
    with (launch.ENGINE_STATE / "slimwise_run.lock").open("w") as live:
        fcntl.flock(live, fcntl.LOCK_SH)
        launch._clear_killed_run()
        assert stale.exists()
    assert "another run is going on" in capsys.readouterr().err


def test_a_killed_run_leaves_nothing_locked(launch):
    locks = launch.ENGINE_STATE / "locks"
    locks.mkdir(parents=True)
    (locks / "0.input.lock").touch()
    launch._clear_killed_run()
    assert not list(locks.iterdir())


@pytest.mark.parametrize(
    ("words", "cores"),
    [
        ([], ["--cores", "all"]),
        (["--configfile", "config/smoke.yaml"], ["--cores", "all"]),
        (["--jobscript", "job.sh"], ["--cores", "all"]),
        (["-c2"], []),
        (["--jobs=2"], []),
        (["--profile", "workflow/profiles/slurm"], []),
    ],
)
def test_all_cores_of_this_machine_unless_told_where_jobs_run(launch, monkeypatch, words, cores):
    become = []
    monkeypatch.setenv("SLIMWISE_ENGINE", "")
    monkeypatch.setattr(launch, "_ensure_environment", lambda _: None)
    monkeypatch.setattr(launch, "_clear_killed_run", lambda: None)
    monkeypatch.setattr(launch, "_become", lambda *words: become.extend(words))
    monkeypatch.setattr(launch.os, "chdir", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["launch.py", "run", *words])
    launch.main()
    assert become[4:] == [*cores, *words]


@pytest.mark.parametrize(
    ("command", "module"),
    [("run", "snakemake"), ("test", "pytest"), ("slimwise", "slimwise.cli")],
)
def test_further_words_go_to_the_program(launch, monkeypatch, command, module):
    became = []

    def become(*words):
        became.extend(words)
        raise SystemExit

    monkeypatch.setenv("SLIMWISE_ENGINE", "")
    monkeypatch.setattr(launch, "_ensure_environment", lambda _: None)
    monkeypatch.setattr(launch, "_clear_killed_run", lambda: None)
    monkeypatch.setattr(launch, "_become", become)
    monkeypatch.setattr(launch.os, "chdir", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["launch.py", command, "--mode", "full"])
    with pytest.raises(SystemExit):
        launch.main()
    assert became[:2] == ["-m", module]
    assert became[-2:] == ["--mode", "full"]


def test_results_from_the_future_are_dated_back(launch, capsys):
    results = launch.ROOT / "results" / "study"
    results.mkdir(parents=True)
    for name, moved_s in (("old", -99), ("new", 99)):
        (results / name).touch()
        moved = time.time() + moved_s
        os.utime(results / name, (moved, moved))
    launch._date_back()
    assert (results / "old").stat().st_mtime < time.time() - 90
    assert time.time() - 9 < (results / "new").stat().st_mtime <= time.time()
    assert "1 results were dated in the future" in capsys.readouterr().err


def test_an_old_python_is_told_so(launch, monkeypatch):
    monkeypatch.setattr(launch, "OLDEST_PYTHON", (99, 0))
    monkeypatch.setattr(sys, "argv", ["launch.py", "test"])
    with pytest.raises(SystemExit, match="too old"):
        launch.main()


def test_help_behind_a_command_is_that_of_the_program(launch, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["launch.py", "slimwise", "serve", "--help"])
    arguments, words = launch._parser().parse_known_args()
    assert arguments.command == "slimwise"
    assert words == ["serve", "--help"]


def test_help_needs_no_environment():
    outcome = subprocess.run(
        [sys.executable, str(LAUNCH), "--help"], capture_output=True, text=True, check=True
    )
    assert "--accelerator" in outcome.stdout
