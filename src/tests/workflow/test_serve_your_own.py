"""The commands of the page on serving one's own model, word by word."""

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from slimwise.backbones.mini.tasks.registry import GRADED
from slimwise.backbones.mini.tasks.split import Split, draw_items
from slimwise.paths import EMBEDDED_CHECKPOINT

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / ".github" / "SERVE_YOUR_OWN.md"


def page_commands() -> list[str]:
    """Texts of the fenced blocks that a reader runs, in their order."""
    return re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def model(tmp_path):
    """The miniature as a user's own: under another name, and with a window for longer prompts."""
    folder = tmp_path / "data" / "my-model"
    shutil.copytree(EMBEDDED_CHECKPOINT, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 4096}))
    return folder


@pytest.fixture
def chats(tmp_path):
    """A file of conversations for each of the miniature's tasks."""
    folder = tmp_path / "data" / "chats"
    folder.mkdir(parents=True)
    for name, family in GRADED.items():
        with (folder / f"{name}.jsonl").open("w") as file:
            for item in draw_items(family, 16, 0, Split.TRAIN):
                answer = {"role": "assistant", "content": f"<think>\n{item.response}"}
                row = {"messages": [{"role": "user", "content": item.prompt}, answer]}
                file.write(json.dumps(row | {"tools": list(item.tools)}) + "\n")
    return folder


@pytest.fixture
def clone(tmp_path):
    """A copy of the tree, in which this environment stands for one that launch.py would build."""
    root = tmp_path / "clone"
    root.mkdir()
    shutil.copy2(ROOT / "Snakefile", root)
    shutil.copy2(ROOT / "pyproject.toml", root)
    for name in ("workflow", "config", "envs", "src"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    programs = root / ".venv" / "bin"
    programs.mkdir(parents=True)
    for name, module in {"python": "", "python3": "", "slimwise": " -m slimwise.cli"}.items():
        text = f'#!/bin/sh\nPYTHONPATH={root}/src exec {sys.executable}{module} "$@"\n'
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    launch = module_of(root / "workflow" / "launch.py")
    accelerator = launch._parser().parse_args(["run"]).accelerator
    launch.STAMP.write_text(json.dumps(launch._stamp(accelerator)))
    return root


def module_of(path: Path):
    spec = importlib.util.spec_from_file_location("launch_of_clone", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_five_commands_between_its_variables_and_a_request():
    variables, *commands, request = page_commands()
    assert re.findall(r"^export (\w+)=", variables, re.MULTILINE) == [
        "MODEL",
        "CHATS",
        "KEPT",
        "STEPS",
    ]
    assert len(commands) == 5
    assert all(command.startswith("python3 workflow/launch.py ") for command in commands)
    assert request.startswith("curl ")


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.timeout(1200)
def test_the_commands_lead_to_an_answer(clone, model, chats):
    _, *preparing, serving, request = page_commands()
    own = {"MODEL": str(model), "CHATS": str(chats), "KEPT": "32", "STEPS": "2"}
    path = f"{clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    shell = {"cwd": clone, "env": {**os.environ, **own, "PATH": path}, "text": True}
    for command in preparing:
        done = subprocess.run(["bash", "-ec", command], capture_output=True, check=False, **shell)
        assert done.returncode == 0, done.stdout + done.stderr
    overlay = yaml.safe_load((clone / "config" / "my-model.yaml").read_text())
    assert overlay["backbone"]["model"] == str(model)
    checkpoint = clone / "results" / "my-model" / "40_checkpoints" / "reap-m32-kd_uniform"
    assert (checkpoint / "manifest.json").is_file()
    server = subprocess.Popen(["bash", "-ec", f"exec {serving}"], stdout=subprocess.PIPE, **shell)
    try:
        assert server.stdout is not None
        assert "serves the model decoder" in server.stdout.readline()
        answer = subprocess.run(["bash", "-ec", request], capture_output=True, check=True, **shell)
        assert json.loads(answer.stdout)["usage"]["completion_tokens"] > 0
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 130
    finally:
        server.kill()
        server.wait()
