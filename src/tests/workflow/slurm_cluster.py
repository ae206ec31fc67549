"""A SLURM of our own on this machine: its daemons, two nodes and two GPUs that are plain files."""

import os
import re
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "scontrol")
NODES = ("node1", "node2")
_PARTITION = "main"
_START_TIMEOUT_S = 60


@dataclass(frozen=True)
class SlurmCluster:
    """Where the daemons listen: the environment in which SLURM's commands find them."""

    environment: dict[str, str]

    def run(self, *command: str) -> str:
        """What the command prints; CalledProcessError if it fails."""
        return subprocess.run(
            command, env=self.environment, check=True, capture_output=True, text=True
        ).stdout

    def jobs(self) -> list[dict[str, str]]:
        """Every job since the start, by its fields in scontrol, in the order of submission."""
        listed = self.run("scontrol", "--oneliner", "--details", "show", "jobs")
        jobs = [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in listed.splitlines() if line]
        return sorted((job for job in jobs if "JobId" in job), key=lambda job: int(job["JobId"]))


def missing_programs() -> list[str]:
    """Those of PROGRAMS that this machine lacks."""
    places = f"{os.environ['PATH']}{os.pathsep}/usr/sbin"
    return [name for name in PROGRAMS if shutil.which(name, path=places) is None]


@contextmanager
def slurm_cluster(folder: Path) -> Iterator[SlurmCluster]:
    """Daemons that accept jobs until the block ends; their files and logs lie in the folder.

    Both nodes are this machine, under two names; the first has two GPUs.
    """
    folder.chmod(0o755)  # munged refuses a socket that others could not reach
    ports = _free_ports(1 + len(NODES))
    config = folder / "slurm.conf"
    config.write_text(_slurm_conf(folder, ports))
    for name in ("gpu0", "gpu1"):
        (folder / name).touch()
    (folder / "gres.conf").write_text(f"NodeName=node1 Name=gpu File={folder}/gpu[0-1]\n")
    (folder / "state").mkdir()
    _write_srun(folder / "bin" / "srun", config)
    paths = os.pathsep.join([str(folder / "bin"), os.environ["PATH"], "/usr/sbin"])
    cluster = SlurmCluster(os.environ | {"SLURM_CONF": str(config), "PATH": paths})
    with ExitStack() as running:

        def start(*command: str) -> subprocess.Popen[bytes]:
            log = folder / f"{command[0]}-{command[-1]}.log"
            return running.enter_context(_daemon(command, cluster, log))

        munged = [start(*_munged(folder))]
        _wait(lambda: (folder / "munge.socket").exists(), munged)
        slurm = [start("slurmctld", "-D"), *(start("slurmd", "-D", "-N", node) for node in NODES)]
        _wait(lambda: _num_idle(cluster) == len(NODES), slurm)
        try:
            yield cluster
        finally:
            cluster.run("scancel", "--partition", _PARTITION)
            _wait(lambda: _num_idle(cluster) == len(NODES), slurm)


def _write_srun(path: Path, config: Path) -> None:
    """An srun that finds our configuration: the engine's plugin drops SLURM_CONF before it."""
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nSLURM_CONF={config} exec {shutil.which("srun")} "$@"\n')
    path.chmod(0o755)


def _munged(folder: Path) -> list[str]:
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o600)
    files = {"key": key, "socket": folder / "munge.socket", "pid": folder / "munged.pid"}
    files |= {"log": folder / "munged.txt", "seed": folder / "munged.seed"}
    options = [f"--{name}-file={path}" for name, path in files.items() if name != "socket"]
    return ["munged", "--force", f"--socket={files['socket']}", *options, "--foreground"]


def _slurm_conf(folder: Path, ports: list[int]) -> str:
    user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    host, (controller, *daemons) = socket.gethostname(), ports
    here = f"NodeHostname={host} NodeAddr=127.0.0.1 CPUs=2"
    return f"""
ClusterName=slimwise
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
MinJobAge=86400
KillWait=10
ReturnToService=2
MpiDefault=none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobs.log
SchedulerParameters=sched_interval=2,batch_sched_delay=0,requeue_delay=0
NodeName=node1 {here} Port={daemons[0]} RealMemory=16000 Gres=gpu:2
NodeName=node2 {here} Port={daemons[1]} RealMemory=4000
PartitionName={_PARTITION} Nodes={",".join(NODES)} Default=YES MaxTime=UNLIMITED
"""


def _free_ports(count: int) -> list[int]:
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def _daemon(
    command: Sequence[str], cluster: SlurmCluster, log: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=cluster.environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        process.terminate()
        process.wait(_START_TIMEOUT_S)


def _num_idle(cluster: SlurmCluster) -> int:
    try:
        states = cluster.run("sinfo", "--noheader", "--Node", "--format=%T")
    except subprocess.CalledProcessError:
        return 0
    return len(re.findall(r"^idle$", states, re.MULTILINE))


def _wait(is_there: Callable[[], bool], daemons: Sequence[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while not is_there():
        ended = [daemon.args for daemon in daemons if daemon.poll() is not None]
        assert not ended, f"ended at once: {ended}"
        assert time.monotonic() < deadline, f"not there after {_START_TIMEOUT_S} s"
        time.sleep(0.2)
