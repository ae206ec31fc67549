import pytest
from pydantic import ValidationError

from slimwise.resources import ResourceConfig


def test_models_on_cpu_ask_for_no_gpu():
    assert ResourceConfig(model_memory_mb=7, model_runtime_minutes=9).model_job(2) == {
        "mem_mb": 7,
        "runtime": 9,
        "nodes": 1,
    }


def test_a_server_a_phase_takes_twice_as_much():
    job = ResourceConfig(gpus=8, model_memory_mb=7).model_job(2, num_servers=2)
    assert (job["gpu"], job["mem_mb"]) == (4, 14)


@pytest.mark.parametrize(
    ("gpus", "asked", "told", "threads"),
    [
        (0, 1, None, 16),
        (1, 1, None, 16),
        (8, 2, None, 4),
        (1, 1, 8, 2),
        (1, 2, 1, 16),
        (1, 1, 99, 1),
    ],
)
def test_a_job_takes_the_cores_of_its_gpus(gpus, asked, told, threads):
    assert ResourceConfig(gpus=gpus).threads(16, asked, told) == threads


def test_a_job_on_several_hosts_asks_for_the_gpus_of_each():
    job = ResourceConfig(gpus=4, hosts=3).spread_job()
    assert "gpu" not in job
    assert {"gres": "gpu:4", "nodes": 3, "tasks": 3, "mpi": "srun"}.items() <= job.items()


@pytest.mark.parametrize(
    ("gpus", "gpus_per_process", "launcher"),
    [
        (0, 1, "slimwise"),
        (1, 1, "SLIMWISE_GPUS=1 slimwise"),
        (4, 4, "SLIMWISE_GPUS=4 slimwise"),
        (4, 2, "SLIMWISE_GPUS=4 torchrun --nproc-per-node 2 --no-python --standalone slimwise"),
    ],
)
def test_one_host_starts_a_process_for_each_share_of_its_gpus(gpus, gpus_per_process, launcher):
    assert ResourceConfig(gpus=gpus).launcher(2, gpus_per_process) == launcher


def test_several_hosts_meet_where_the_configuration_says():
    launcher = ResourceConfig(gpus=4, hosts=2, rendezvous="node7:29400").launcher(1)
    assert launcher.startswith(
        "SLIMWISE_GPUS=4 torchrun --nproc-per-node 4 --no-python --nnodes 2 "
    )
    assert launcher.endswith(" --rdzv-endpoint node7:29400 slimwise")


def test_a_slurm_job_places_its_processes_itself():
    launcher = ResourceConfig(hosts=2).launcher(16)
    assert launcher.startswith("srun --nodes 2 --ntasks 2 --cpus-per-task 16 torchrun ")
    assert "--nproc-per-node 1 " in launcher


def test_a_meeting_place_for_one_host_is_refused():
    with pytest.raises(ValidationError, match="set hosts"):
        ResourceConfig(rendezvous="node7:29400")
