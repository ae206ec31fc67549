import importlib
import inspect
import subprocess
import sys

import pytest

from slimwise.cli import main
from slimwise.commands import COMMANDS
from slimwise.engine.api_key import API_KEY_VARIABLE, api_key


def _entry(target: str):
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_flags_are_the_keywords_of_the_entry(command):
    parameters = list(inspect.signature(_entry(command.entry)).parameters.values())
    keywords = {item.name for item in parameters if item.kind is item.KEYWORD_ONLY}
    assert {flag.name for flag in command.flags} == keywords
    assert len(parameters) == len(keywords) + 1
    assert inspect.isclass(_entry(command.config))


def test_help_loads_no_heavy_library():
    program = (
        "import sys\n"
        "from slimwise.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    pass\n"
        "assert not {'torch', 'pandas', 'pydantic'} & set(sys.modules)\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    for command in COMMANDS:
        assert command.name in outcome.stdout


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ('{"gates": "model"}', "did you mean gate?"),
        ('{"gate": "best"}', "gate = 'best'"),
        ("{}", "stats.safetensors"),
    ],
)
def test_a_failure_of_the_user_is_one_line_and_status_2(tmp_path, capsys, config, reason):
    stats, out = tmp_path / "stats.safetensors", tmp_path / "scores.parquet"
    words = ["score-experts", "--config", config, "--stats", str(stats), "--out", str(out)]
    assert main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("slimwise: ")
    assert error.count("\n") == 1
    assert reason in error


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--mode", "slimwise"], "needs the kept experts: name them with --keep-set."),
        (["--mode", "full", "--serving", "dtype"], "--serving 'dtype' is no JSON object"),
        (["--mode", "full", "--disaggregation", "{"], "--disaggregation '{' is no JSON object"),
        (["--mode", "full", "--serving", '{"dtypes": 1}'], "did you mean dtype?"),
        (["--mode", "full", "--serving", '{"port": 1}'], "port, which has a flag of its own"),
        (["--mode", "full", "--api-key", ""], "--api-key is empty"),
        (["--mode", "full", "--disaggregation", '{"kv_host": "10.0.0.1"}'], "kv_host, unread by"),
    ],
)
def test_serving_refuses_before_a_server_starts(tmp_path, capsys, words, reason):
    assert main(["serve", str(tmp_path), *words, "--logs", str(tmp_path)]) == 2
    assert reason in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_key_of_the_command_line_is_that_of_the_servers(tmp_path, monkeypatch):
    keys = []
    monkeypatch.setenv(API_KEY_VARIABLE, "another key")
    monkeypatch.setattr("slimwise.serve.run.run", lambda *_, **__: keys.append(api_key()))
    serve = ["serve", str(tmp_path), "--mode", "full"]
    assert main(serve) == 0
    assert main([*serve, "--api-key", "a key"]) == 0
    assert keys == ["another key", "a key"]
