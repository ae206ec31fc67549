"""Studies as jobs of a real SLURM, by the profile: pytest -m slurm.

The table of the first study's jobs is kept in results/slurm/.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
import yaml

from slimwise.artifacts.distill_log import LOG_NAME, read_distill_log
from slimwise.artifacts.routing_stats import read_routing_stats
from slimwise.artifacts.tables import write_table
from slimwise.paths import StudyPaths
from slimwise.provenance import current_provenance

from .slurm_cluster import SlurmCluster, missing_programs, slurm_cluster

ROOT = Path(__file__).resolve().parents[3]
_DISTILLED = "reap-m32-kd_uniform"
_WORDS = (
    *("--workflow-profile", "workflow/profiles/default"),
    *("--profile", "workflow/profiles/slurm"),
    # This machine is small and near, and has no accounting.
    *("--max-threads", "1", "--latency-wait", "5", "--slurm-status-command", "squeue"),
    *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "2"),
)

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        bool(missing_programs()),
        reason="needs Debian's packages slurmctld, slurmd, slurm-client and munge",
    ),
]


@dataclass(frozen=True)
class Site:
    """A folder in which the workflow runs, and the cluster that it submits to."""

    root: Path
    cluster: SlurmCluster

    @property
    def paths(self) -> StudyPaths:
        return StudyPaths.of("smoke", self.root / "results")

    def start(self, changes: dict[str, dict[str, Any]], *targets: Path) -> subprocess.Popen[str]:
        """The smoke study with other values, or some of its files."""
        study = yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text())
        for section, values in changes.items():
            study[section] = study.get(section, {}) | values
        (self.root / "study.yaml").write_text(yaml.safe_dump(study))
        named = [str(target.relative_to(self.root)) for target in targets]
        command = [sys.executable, "-m", "snakemake", *_WORDS, *named, "--configfile", "study.yaml"]
        programs = Path(sys.executable).parent
        path = f"{programs}{os.pathsep}{self.cluster.environment['PATH']}"
        return subprocess.Popen(
            command,
            cwd=self.root,
            env=self.cluster.environment | {"PATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, changes: dict[str, dict[str, Any]], *targets: Path) -> None:
        """The same until it ends; AssertionError shows its output if it fails."""
        study = self.start(changes, *targets)
        output, _ = study.communicate()
        assert study.returncode == 0, output

    def jobs_of(self, rule: str) -> list[dict[str, str]]:
        return [job for job in self.cluster.jobs() if job["Comment"].startswith(f"rule_{rule}")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    with slurm_cluster(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture
def site(cluster: SlurmCluster, tmp_path: Path) -> Site:
    """This tree's workflow and code, with results of its own."""
    for name in ("Snakefile", "workflow", "config", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    return Site(tmp_path, cluster)


def test_the_smoke_study_runs_as_jobs_that_ask_for_what_they_need(site):
    on_cpu = {"device": "cpu"}  # its GPUs are plain files
    resources = {"gpus": 1, "model_memory_mb": 3000, "record_memory_mb": 1000}
    site.run({"calibration": on_cpu, "distillation": on_cpu, "resources": resources})
    assert site.paths.study_record.exists()
    jobs = _jobs(site.cluster)
    _write(jobs.assign(slurm=site.cluster.run("scontrol", "--version").split()[-1]))
    assert set(jobs["state"]) == {"COMPLETED"}
    on_gpus = set(jobs.loc[jobs["gpus"] > 0, "rule"])
    assert on_gpus == {
        "collect_stats",
        "distill_decoder",
        "generate_full_answers",
        "generate_pruned_answers",
        "generate_colocated_answers",
        "generate_distilled_answers",
        "sweep_throughput",
    }


def test_two_hosts_add_up_to_one(site):
    """torchrun starts a process on each node; sums and steps are those of one process."""
    found = []
    for hosts in (1, 2):
        changes = _distillation(steps=2) | {"resources": {"hosts": hosts, "model_memory_mb": 3000}}
        site.run(changes, site.paths.routing_stats, site.paths.trained(_DISTILLED))
        stats = read_routing_stats(site.paths.routing_stats)
        losses = read_distill_log(site.paths.trained(_DISTILLED).parent / LOG_NAME)["loss"]
        found.append((stats, losses))
        for name in ("20_calibration", "50_distilled", "work"):
            (site.paths.root / name).rename(site.paths.root / f"{name}_{hosts}")
    (one, one_loss), (two, two_loss) = found
    for component, stats in one.items():
        assert torch.equal(two[component].tokens_LE, stats.tokens_LE)
        torch.testing.assert_close(
            two[component].gate_norm_LE, stats.gate_norm_LE, rtol=1e-5, atol=1e-6
        )
    assert two_loss.tolist() == pytest.approx(one_loss.tolist(), rel=1e-3)
    for rule in ("collect_stats", "distill_decoder"):
        assert [job["NumNodes"] for job in site.jobs_of(rule)][-2:] == ["1", "2"]


def test_a_cancelled_or_preempted_distillation_resumes(site):
    changes = _distillation(steps=20, checkpoint_every_steps=1)
    target = site.paths.trained(_DISTILLED)
    study = site.start(changes, target)
    cancelled = _when_steps(site, 3)
    site.cluster.run("scancel", cancelled["JobId"])
    output, _ = study.communicate()
    assert study.returncode != 0, output
    assert _saved_steps(site) >= 3
    assert not target.exists()

    study = site.start(changes, target)
    preempted = _when_steps(site, 9)
    assert preempted["JobId"] != cancelled["JobId"]
    site.cluster.run("scontrol", "requeue", preempted["JobId"])
    output, _ = study.communicate()
    assert study.returncode == 0, output
    (job,) = (job for job in site.cluster.jobs() if job["JobId"] == preempted["JobId"])
    assert (job["JobState"], job["Restarts"]) == ("COMPLETED", "1")
    log = (site.paths.log(f"distill_decoder/{_DISTILLED}")).read_text()
    assert "distilling from step" in log
    assert "distilling from step 0" not in log
    assert len(read_distill_log(target.parent / LOG_NAME)) == 20


def _distillation(**values: int) -> dict[str, dict[str, Any]]:
    """A study that distils without asking the full model anything before."""
    exact = {"dtype": "float32"}
    return {
        "backbone": {"accuracy_floors": {}},
        "calibration": {**exact, "batch_tokens": 256},
        "distillation": {**exact, **values},
        "resources": {"model_memory_mb": 3000},
    }


def _write(jobs: pd.DataFrame) -> None:
    origin = current_provenance()
    rows = jobs.assign(commit=origin.commit, date=origin.date, hardware=origin.hardware)
    path = StudyPaths.of("slurm", ROOT / "results").table("jobs")
    write_table(path, rows, list(jobs.columns), digits=3)


def _jobs(cluster: SlurmCluster) -> pd.DataFrame:
    return pd.DataFrame([_row(job) for job in cluster.jobs()])


def _row(job: dict[str, str]) -> dict[str, Any]:
    gpus = job.get("TresPerJob", "").rpartition(":")[2]
    tres = dict(part.split("=") for part in job["TRES"].split(","))
    rule, _, wildcards = job["Comment"].removeprefix("rule_").partition("_wildcards_")
    hours, minutes, seconds = map(int, job["RunTime"].split(":"))
    return {
        "job": int(job["JobId"]),
        "rule": rule,
        "wildcards": wildcards,
        "partition": job["Partition"],
        "nodes": job["NodeList"],
        "cpus": int(tres["cpu"]),
        "memory": tres["mem"],
        "gpus": int(gpus or 0),
        "state": job["JobState"],
        "started": job["StartTime"],
        "seconds": (hours * 60 + minutes) * 60 + seconds,
        "restarts": int(job["Restarts"]),
    }


def _when_steps(site: Site, count: int) -> dict[str, str]:
    """The job that is distilling, once it has saved that many steps."""
    _wait(lambda: _saved_steps(site) >= count)
    return site.jobs_of("distill_decoder")[-1]


def _saved_steps(site: Site) -> int:
    logs = list(site.paths.work("distill").glob(f"*/{LOG_NAME}"))
    return max((len(path.read_text().splitlines()) - 1 for path in logs), default=0)


def _wait(is_so: Callable[[], bool], limit_s: float = 600) -> None:
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited {limit_s:g} s"
        time.sleep(0.2)
