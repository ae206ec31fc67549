"""What a job may ask of the machine or cluster it runs on, and how its processes are started."""

from typing import Self

from pydantic import Field, model_validator

from slimwise.stage_config import StageConfig

GPUS_VARIABLE = "SLIMWISE_GPUS"
"""GPUs that a host was said to have, for processes whose device is auto; not set if none."""

# Hosts of a SLURM job meet at one of 10,000 ports, below those that the kernel hands out.
_FIRST_PORT = 20_000
# Seconds that hosts wait for each other, where somebody starts them one by one.
_PATIENCE = "join_timeout=900,read_timeout=900"


class ResourceConfig(StageConfig):
    """Requests that the workflow engine schedules by; stages are only told that there are GPUs."""

    gpus: int = Field(
        default=0,
        ge=0,
        description="GPUs that calibration and distillation ask for on each host, where "
        "serving.gpus are those of a server; a host with fewer is refused. 0 asks for none.",
    )
    hosts: int = Field(
        default=1,
        ge=1,
        description="Hosts on which calibration and distillation run together, with results/ on a "
        "file system of all.",
    )
    rendezvous: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9_.-]+:\d+$",
        description="host:port at which the processes of several hosts meet; null takes it from "
        "the SLURM job.",
    )
    model_memory_mb: int = Field(
        default=8000, ge=1, description="Memory of a job that runs a model, MB, on each host."
    )
    record_memory_mb: int = Field(default=2000, ge=1, description="Memory of every other job, MB.")
    model_runtime_minutes: int = Field(
        default=1440,
        ge=1,
        description="Time after which a cluster may end a job that runs a model, minutes.",
    )
    record_runtime_minutes: int = Field(
        default=120, ge=1, description="The same of every other job, minutes."
    )

    @model_validator(mode="after")
    def _hosts_that_can_meet(self) -> Self:
        if self.rendezvous is not None and self.hosts == 1:
            raise ValueError("rendezvous is for several hosts: set hosts, or leave it null")
        return self

    def record_job(self) -> dict[str, int]:
        """Requests of a job that runs no model."""
        return {"mem_mb": self.record_memory_mb, "runtime": self.record_runtime_minutes}

    def model_job(self, num_gpus: int = 0, num_servers: int = 1) -> dict[str, int]:
        """Requests of a job on one host whose models need that many GPUs each, if GPUs are used."""
        gpus = {"gpu": num_gpus * num_servers} if self.gpus and num_gpus else {}
        return {
            "mem_mb": self.model_memory_mb * num_servers,
            "runtime": self.model_runtime_minutes,
            "nodes": 1,
            **gpus,
        }

    def threads(self, num_cores: int, num_gpus: int, gpus_in_all: int | None) -> int:
        """Threads of a job of that many GPUs: all cores if models run on CPU, else its share.

        gpus_in_all are those that the workflow engine was told of, None if it was not.
        """
        if not self.gpus:
            return num_cores
        return min(max(num_cores * num_gpus // (gpus_in_all or self.gpus), 1), num_cores)

    def spread_job(self) -> dict[str, int | str]:
        """Requests of a job that runs on all hosts."""
        requests = self.model_job(self.gpus)
        if self.hosts == 1:
            return {**requests}
        # A count of GPUs is one of the whole job, which SLURM may divide unevenly; gres is of each
        # host. mpi says that the job places its processes itself.
        gpus = {"gres": f"gpu:{self.gpus}", "tasks_per_gpu": 0} if self.gpus else {}
        requests.pop("gpu", None)
        return {**requests, **gpus, "nodes": self.hosts, "mpi": "srun", "tasks": self.hosts}

    def launcher(self, num_threads: int, gpus_per_process: int = 1) -> str:
        """How the command line of a spread job begins, as a shell reads it in the job.

        A process on each share of a host's GPUs, one a host on CPU, of that many threads.
        """
        starter = self._starter(num_threads, gpus_per_process)
        return f"{GPUS_VARIABLE}={self.gpus} {starter}" if self.gpus else starter

    def _starter(self, num_threads: int, gpus_per_process: int) -> str:
        num_processes = max(self.gpus // gpus_per_process, 1)
        if self.hosts == 1 and num_processes == 1:
            return "slimwise"
        torchrun = f"torchrun --nproc-per-node {num_processes} --no-python"
        if self.hosts == 1:
            return f"{torchrun} --standalone slimwise"
        torchrun += f" --nnodes {self.hosts} --rdzv-backend c10d --rdzv-conf {_PATIENCE}"
        if self.rendezvous is not None:
            return f"{torchrun} --rdzv-endpoint {self.rendezvous} slimwise"
        # The job's shell runs on the first of its hosts.
        endpoint = f"$(hostname):$(({_FIRST_PORT} + SLURM_JOB_ID % 10000))"
        srun = f"srun --nodes {self.hosts} --ntasks {self.hosts} --cpus-per-task {num_threads}"
        return f"{srun} {torchrun} --rdzv-id $SLURM_JOB_ID --rdzv-endpoint {endpoint} slimwise"
