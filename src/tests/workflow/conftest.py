"""A small copy of the tree in which the real workflow engine runs a stand-in for the stages."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# Leaves each stage's outputs, empty: what is tested is which jobs the engine would run.
_STAND_IN = """#!/usr/bin/env bash
set -eu
stage=$1
[ "$stage" != check-backbone ] || exit 0
while [ "$1" != --out ]; do shift; done
out=$2
case $stage in
    export-decoder | distill-decoder) files=$out/manifest.json ;;
    grade-answers) files="$out ${out%/*}/disagreements.csv" ;;
    write-tables)
        files=$(echo $out/{accuracy,categories,findings,table_{1..4}}.{csv,md})
        files="$files $(echo $out/{keep_set_overlap{,_by_layer},stage_times}.{csv,md})" ;;
    write-throughput-tables)
        files=$(echo $out/{throughput,ratio_at_target,prefill_throughput}.{csv,md})
        files="$files $(echo $out/accuracy_and_throughput.{csv,md})" ;;
    draw-throughput-figures)
        files=$(echo $out/{figure_1b,prefill_throughput,throughput}.png)
        files="$files $out/throughput_captions.json" ;;
    draw-figures)
        files=$(echo $out/{accuracy_by_num_kept,output_lengths,expert_load{,_by_component}}.png)
        files="$files $(echo $out/{figure_3,figure_5,length_accuracy,distillation}.png)"
        files="$files $(echo $out/keep_set_overlap{,_by_layer}.png)"
        files="$files $out/captions.json" ;;
    *) files=$out ;;
esac
for file in $files; do mkdir -p "$(dirname "$file")" && touch "$file"; done
"""


@dataclass(frozen=True)
class Tree:
    """A copy of the repository's workflow, configuration and source."""

    root: Path

    def engine(self, *words: str, study: str = "smoke") -> subprocess.CompletedProcess[str]:
        """The study under the workflow engine, its output in stdout."""
        environment = os.environ | {
            "PATH": f"{self.root / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(self.root / "src"),
        }
        overlays = [f"config/{study}.yaml", *(word for word in words if word.endswith(".yaml"))]
        others = [word for word in words if not word.endswith(".yaml")]
        command = [sys.executable, "-m", "snakemake", "--cores", "2", *others]
        return subprocess.run(
            [*command, "--configfile", *overlays],
            cwd=self.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def planned(self, *words: str, study: str = "smoke") -> set[str]:
        """Jobs that a dry run names, as rule or rule[wildcards]."""
        outcome = self.engine("--dry-run", *words, study=study)
        assert outcome.returncode == 0, outcome.stdout
        jobs = set()
        for block in re.split(r"^(?:local)?rule ", outcome.stdout, flags=re.MULTILINE)[1:]:
            rule = block.partition(":")[0]
            wildcards = re.search(r"^    wildcards: (.*)$", block, re.MULTILINE)
            values = re.findall(r"=([^,]+)", wildcards[1]) if wildcards else []
            jobs.add(f"{rule}[{'-'.join(values)}]" if values else rule)
        return jobs - {"all"}

    def edit(self, name: str, change: Callable[[str], str]) -> None:
        path = self.root / name
        path.write_text(change(path.read_text()))

    def overlay(self, text: str) -> str:
        (self.root / "config" / "overlay.yaml").write_text(text)
        return "config/overlay.yaml"


@pytest.fixture(scope="session")
def finished_study(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """The tree after a complete run; tests copy it."""
    root = tmp_path_factory.mktemp("study")
    for name in ("Snakefile", "workflow", "config", "src"):
        source = ROOT / name
        if source.is_file():
            shutil.copy2(source, root / name)
        else:
            skipped = shutil.ignore_patterns("__pycache__", "*.safetensors", "tests")
            shutil.copytree(source, root / name, ignore=skipped)
    checkpoint = root / "src" / "slimwise" / "backbones" / "mini" / "checkpoint"
    checkpoint.mkdir(exist_ok=True)
    (checkpoint / "config.json").touch()
    (checkpoint / "model.safetensors").touch()
    stand_in = root / "bin" / "slimwise"
    stand_in.parent.mkdir()
    stand_in.write_text(_STAND_IN)
    stand_in.chmod(0o755)
    tree = Tree(root)
    outcome = tree.engine()
    assert outcome.returncode == 0, outcome.stdout
    return tree


@pytest.fixture
def tree(finished_study: Tree, tmp_path: Path) -> Tree:
    """A copy of the finished study that a test may change."""
    root = tmp_path / "tree"
    shutil.copytree(finished_study.root, root)
    return Tree(root)
