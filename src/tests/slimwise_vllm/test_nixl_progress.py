"""The settings that NIXL's Python interface gives an agent, after ours had their say."""

import importlib

import pytest

from slimwise_vllm.nixl_progress import let_progress_thread_sleep


def test_an_agent_that_would_never_wait_waits_and_another_keeps_its_wait():
    bindings = pytest.importorskip("nixl_cu13._bindings")
    let_progress_thread_sleep()
    settings = bindings.nixlAgentConfig
    let_progress_thread_sleep()
    assert bindings.nixlAgentConfig is settings
    # Where the interface looks it up.
    assert importlib.import_module("nixl_cu13._api").nixlBind.nixlAgentConfig is settings
    config = settings()
    config.pthrDelay = 0
    assert config.pthrDelay == 1000
    config.pthrDelay = 5000
    assert config.pthrDelay == 5000
    config.useProgThread = True
    assert config.useProgThread
