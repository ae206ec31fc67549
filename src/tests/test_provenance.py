import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slimwise.provenance import SOURCE_ROOT, code_digest, current_provenance

_SOURCES = {
    "slimwise/__init__.py": "",
    "slimwise/score/__init__.py": "",
    "slimwise/score/run.py": (
        '"""Score."""\n'
        "from slimwise.core import weights\n"
        "def run(x):\n"
        '    """Scores."""\n'
        "    from slimwise.core.lazy import shift  # on demand\n"
        "    return shift(x) * weights.FACTOR\n"
    ),
    "slimwise/score/shots.json": "[1]",
    "slimwise/core/__init__.py": "",
    "slimwise/core/weights.py": "FACTOR = 2\n",
    "slimwise/core/lazy.py": "def shift(x):\n    return x + 1\n",
    "slimwise/core/unrelated.py": "ANSWER = 1\n",
}


def _digest(folder: Path, **changes: str) -> str:
    """Digest of slimwise.score.run in a tree whose files are changed as asked."""
    root = folder / str(len(list(folder.iterdir())))
    for name, source in _SOURCES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(changes.get(path.stem, source) if path.stem != "__init__" else source)
    return code_digest("slimwise.score.run", root)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("weights", "# doubled\nFACTOR = 2  # why not\n"),
        ("weights", "FACTOR=(2)\n\n\n"),
        ("lazy", 'def shift(x):\n    """x moved by one."""\n    return (x\n            + 1)\n'),
        ("unrelated", "ANSWER = 2\n"),
    ],
)
def test_prose_layout_and_unrelated_modules_keep_the_digest(tmp_path, module, source):
    assert _digest(tmp_path, **{module: source}) == _digest(tmp_path)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("weights", "FACTOR = 3\n"),
        ("lazy", "def shift(x):\n    return x + 2\n"),
        ("run", "from slimwise.core import weights\ndef run(x):\n    return x\n"),
    ],
)
def test_changed_code_anywhere_in_the_closure_changes_the_digest(tmp_path, module, source):
    assert _digest(tmp_path, **{module: source}) != _digest(tmp_path)


def test_relative_imports_are_followed(tmp_path):
    relative = "from ..core import weights\ndef run(x):\n    return x * weights.FACTOR\n"
    assert _digest(tmp_path, run=relative) != _digest(tmp_path, run=relative, weights="FACTOR = 4")


@pytest.mark.parametrize(
    "inside", ["benchmarks/code/candidate.py", "backbones/mini/tasks/program_worker.py"]
)
def test_the_digest_of_grading_holds_what_runs_the_programs(tmp_path, inside):
    only_code = shutil.ignore_patterns("*.safetensors", "*.json", "*.csv", "__pycache__")
    shutil.copytree(SOURCE_ROOT / "slimwise", tmp_path / "slimwise", ignore=only_code)
    with (tmp_path / "slimwise" / inside).open("a") as source:
        source.write("LIMIT = 1\n")
    assert code_digest("slimwise.grade.run", tmp_path) != code_digest("slimwise.grade.run")


def test_a_data_file_counts_for_the_module_beside_it_that_names_it(tmp_path):
    reader = "SHOTS = Path(__file__).with_name('shots.json')\n"
    assert _digest(tmp_path, run=reader, shots="[2]") != _digest(tmp_path, run=reader)
    assert _digest(tmp_path, shots="[2]") == _digest(tmp_path)


@pytest.mark.parametrize("inside", ["page.html", "page.css", "page.js"])
def test_the_look_of_the_report_page_counts(tmp_path, inside):
    no_weights = shutil.ignore_patterns("*.safetensors", "__pycache__")
    shutil.copytree(SOURCE_ROOT / "slimwise", tmp_path / "slimwise", ignore=no_weights)
    page = "slimwise.report.page.run"
    before = code_digest(page, tmp_path)
    code_digest.cache_clear()
    with (tmp_path / "slimwise/report/page" / inside).open("a") as source:
        source.write("\n")
    assert code_digest(page, tmp_path) != before


def test_a_worker_module_named_in_a_string_is_followed(tmp_path):
    starter = "COMMAND = ['-m', 'slimwise.core.lazy']\n"
    changed = _digest(tmp_path, run=starter, lazy="def shift(x):\n    return x\n")
    assert changed != _digest(tmp_path, run=starter)


def test_field_descriptions_are_prose_and_defaults_are_not(tmp_path):
    first = _digest(tmp_path, weights="FACTOR = Field(2, ge=1, description='Factor.')")
    reworded = _digest(tmp_path, weights="FACTOR = Field(2, ge=1, description='The factor.')")
    changed = _digest(tmp_path, weights="FACTOR = Field(2, ge=0, description='Factor.')")
    assert first == reworded != changed


def test_provenance_names_commit_hardware_versions_and_command():
    provenance = current_provenance()
    assert provenance.commit == "unknown" or len(provenance.commit.removesuffix("+dirty")) == 40
    assert provenance.hardware
    assert provenance.versions["python"].startswith("3.")
    assert provenance.date.endswith("+00:00")


def test_provenance_does_not_load_torch():
    program = (
        "import sys; from slimwise.provenance import current_provenance as p; p(); "
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
