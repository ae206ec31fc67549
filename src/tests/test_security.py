"""What the code must not do: run what it reads, or unpack what it was given."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from slimwise.engine.config import DisaggregationConfig, ServingConfig

SOURCE = Path(__file__).resolve().parents[1]
CODE = (
    *SOURCE.glob("slimwise/**/*.py"),
    *SOURCE.glob("slimwise_vllm/**/*.py"),
    SOURCE.parent / "workflow" / "launch.py",
)

_MODULES = {"pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "tarfile", "zipfile"}
_CALLS = {"torch.load", "torch.save", "np.load", "pd.read_pickle", "yaml.load", "os.system"}
_TRUSTED = {"trust_remote_code", "allow_pickle", "shell"}
_IN_THE_SANDBOX = {
    "benchmarks/code/candidate.py",
    "benchmarks/code/assertions.py",
    "backbones/mini/tasks/program_worker.py",
}
"""Files that run in the closed room, or in the worker of generated training data."""


def test_nothing_that_is_read_is_run():
    found = [
        f"{path}, {danger}"
        for path in CODE
        for may_run in [any(str(path).endswith(name) for name in _IN_THE_SANDBOX)]
        for danger in dangers(ast.parse(path.read_text()), may_run=may_run)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from tarfile import open",
        "torch.load(path)",
        "load(folder, trust_remote_code=True)",
        "load(folder, trust_remote_code=asked)",
        "subprocess.run(words, shell=True)",
        "eval(text)",
        "words = ['--trust-remote-code']",
    ],
)
def test_a_danger_is_found(code):
    assert list(dangers(ast.parse(code), may_run=False))


def dangers(tree: ast.Module, *, may_run: bool) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found = {alias.name.partition(".")[0] for alias in names} & _MODULES
            case ast.ImportFrom(module=str(module)):
                found = {module.partition(".")[0]} & _MODULES
            case ast.Call(func=called, keywords=words):
                found = {ast.unparse(called)} & (_CALLS if may_run else {*_CALLS, "eval", "exec"})
                found |= {word.arg for word in words if not _is_false(word.value)} & _TRUSTED
            case ast.Constant(value="--trust-remote-code"):
                found = {node.value}
            case _:
                continue
        yield from (f"line {node.lineno}: {danger}" for danger in found)


def _is_false(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is False


def test_servers_listen_on_this_host_only_unless_asked():
    assert ServingConfig(max_model_len_tokens=64).host == "127.0.0.1"
    assert DisaggregationConfig().kv_host == "127.0.0.1"
