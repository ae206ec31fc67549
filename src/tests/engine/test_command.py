import json
from pathlib import Path

import pytest

from slimwise.artifacts.pool_files import PoolFiles
from slimwise.engine.command import Device, Host, server_command
from slimwise.engine.config import ServingConfig
from slimwise.errors import EngineError

CPU = Host(Device.CPU, num_cores=2)
CUDA = Host(Device.CUDA, num_cores=16)
MODEL = Path("/models/mini")


def command(host: Host, **settings):
    config = ServingConfig(max_model_len_tokens=640, **settings)
    return server_command(MODEL, config, port=8000, parent=1, host=host)


def test_pools_reach_the_plugin_by_name():
    named = {
        "half": Path("/half.json"),
        "kd": PoolFiles(keep_set=Path("/half.json"), trained=Path("/kd/manifest.json")),
    }
    config = ServingConfig(max_model_len_tokens=640)
    built = server_command(MODEL, config, port=8000, parent=1, host=CPU, pools=named)
    assert json.loads(value_after(built.arguments, "--additional-config"))["slimwise"] == {
        "pools": {
            "half": {"keep_set": "/half.json"},
            "kd": {"keep_set": "/half.json", "trained": "/kd/manifest.json"},
        },
        "default_pool": "half",
        "default_mode": "full",
    }


@pytest.mark.parametrize(
    "words",
    [("--additional-config", "{}"), ("--additional_config={}",), ("--additional-config.a=1",)],
)
def test_pools_are_not_lost_to_another_argument(words):
    assert command(CUDA, extra_args=words).arguments[-len(words) :] == words
    config = ServingConfig(max_model_len_tokens=640)
    pooled = server_command(
        MODEL, config, port=8000, parent=1, host=CUDA, pools={"half": Path("/half.json")}
    )
    with pytest.raises(EngineError, match="twice and lose its pools"):
        pooled.with_arguments(*words)


def value_after(arguments, flag):
    return arguments[arguments.index(flag) + 1]


def test_a_cpu_server_is_eager_and_has_one_thread_a_core():
    built = command(CPU, kv_cache_gib=0.5)
    assert "--enforce-eager" in built.arguments
    assert value_after(built.arguments, "--kv-cache-memory-bytes") == str(512 * 1024 * 1024)
    assert built.environment["OMP_NUM_THREADS"] == "2"


def test_cpu_threads_override_the_cores():
    assert command(CPU, cpu_threads=1).environment["OMP_NUM_THREADS"] == "1"


def test_a_cuda_server_takes_its_share_of_memory_and_no_cpu_settings():
    built = command(CUDA, gpu_memory_share=0.8)
    assert value_after(built.arguments, "--gpu-memory-utilization") == "0.8"
    assert "--kv-cache-memory-bytes" not in built.arguments
    assert "--enforce-eager" not in built.arguments
    assert "OMP_NUM_THREADS" not in built.environment


@pytest.mark.parametrize("host", [CPU, CUDA])
def test_further_arguments_come_last_and_so_win(host):
    built = command(host, extra_args=("--max-num-seqs", "7"))
    assert built.arguments[-2:] == ("--max-num-seqs", "7")


def test_a_local_folder_is_served_without_the_hub():
    assert command(CPU).environment["HF_HUB_OFFLINE"] == "1"
    built = server_command(
        Path("owner/name"), ServingConfig(max_model_len_tokens=64), port=1, parent=1, host=CPU
    )
    assert "HF_HUB_OFFLINE" not in built.environment
