import json
from typing import Any

import pytest

from slimwise.core.vocabulary import Phase
from slimwise.engine.command import Device, ServerCommand
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.kv_transfer import with_kv_transfer
from slimwise.engine.router import router_command

pytest.importorskip("nixl")
pytest.importorskip("vllm_router")

PLAIN = ServerCommand(("serve", "--kv-transfer-config", "theirs"), {"OURS": "1"})


def transferring(phase: Phase, device: Device = Device.CPU, **layout: Any) -> ServerCommand:
    config = DisaggregationConfig(**layout)
    return with_kv_transfer(PLAIN, config, phase, side_channel_port=7, device=device)


def test_a_failed_transfer_fails_the_request_whatever_else_is_asked():
    *_, flag, settings = transferring(Phase.DECODE, decode_args=("--seed", "1")).arguments
    assert flag == "--kv-transfer-config"
    assert json.loads(settings)["kv_load_failure_policy"] == "fail"


def test_only_the_decode_server_may_not_keep_prompts():
    flag = "--no-enable-prefix-caching"
    layout: dict[str, Any] = {"decode_args": ("--enable-prefix-caching",)}
    assert transferring(Phase.DECODE, **layout).arguments.index(flag) > 3
    assert flag not in transferring(Phase.PREFILL, **layout).arguments


def test_each_phase_has_its_own_arguments():
    layout: dict[str, Any] = {"prefill_args": ("--seed", "1"), "decode_args": ("--seed", "2")}
    assert transferring(Phase.PREFILL, **layout).arguments[3:5] == ("--seed", "1")
    assert transferring(Phase.DECODE, **layout).arguments[3:5] == ("--seed", "2")


def test_devices_differ_in_transports_and_state_layout():
    on_cpu = transferring(Phase.PREFILL).environment
    assert on_cpu["UCX_TLS"] == "tcp,shm,self"
    assert "VLLM_SSM_CONV_STATE_LAYOUT" not in on_cpu
    on_gpu = transferring(Phase.PREFILL, Device.CUDA).environment
    assert "UCX_TLS" not in on_gpu
    assert on_gpu["VLLM_SSM_CONV_STATE_LAYOUT"] == "DS"
    assert transferring(Phase.PREFILL, ucx_transports="rc").environment["UCX_TLS"] == "rc"


def test_other_servers_are_told_this_hosts_address():
    environment = transferring(Phase.PREFILL, kv_host="10.0.0.3").environment
    assert environment["VLLM_NIXL_SIDE_CHANNEL_HOST"] == "10.0.0.3"
    assert environment["VLLM_NIXL_SIDE_CHANNEL_PORT"] == "7"
    assert environment["OURS"] == "1"


def test_the_router_knows_every_server_and_does_not_hide_failures():
    config = ServingConfig(max_model_len_tokens=64)
    urls = ["http://a:1", "http://b:1"], ["http://c:1"]
    arguments = router_command(*urls, config, port=5, metrics_port=6, parent=1).arguments
    named = [arguments[n + 1] for n, word in enumerate(arguments) if word == "--prefill"]
    assert named == ["http://a:1", "http://b:1"]
    assert arguments[arguments.index("--decode") + 1] == "http://c:1"
    assert "--disable-retries" in arguments
