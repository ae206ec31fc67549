"""The wrapped functions of vLLM, without an engine."""

import functools
import importlib
from types import SimpleNamespace
from typing import Any

import pytest

from slimwise.errors import ConfigError
from slimwise_vllm.plugin import register
from slimwise_vllm.prefix_cache import HASH_KEYS, HASHING_MODULES

POOLS = {"slimwise": {"pools": {"half": "half.json"}}}


def of_engine(additional_config) -> Any:
    """What the wrapped methods know of the engine that they belong to."""
    load = SimpleNamespace(load_format="auto")
    config = SimpleNamespace(
        additional_config=additional_config, load_config=load, kv_transfer_config=None
    )
    return SimpleNamespace(vllm_config=config)


def request(**extra_args) -> Any:
    parameters = SimpleNamespace(extra_args=extra_args)
    return SimpleNamespace(request_id="r1", sampling_params=parameters, num_prompt_tokens=5)


@pytest.mark.parametrize("module", HASHING_MODULES)
def test_block_hashes_name_their_pools_though_another_plugin_wrapped_them(module, monkeypatch):
    holder = importlib.import_module(module)

    @functools.wraps(lambda *_: None)
    def of_another_plugin(*_):
        return None, 0

    monkeypatch.setattr(holder, HASH_KEYS, of_another_plugin)
    register()
    register()
    pruned = request(slimwise_assigned=[1, 1, "abc", "abc", -1])
    assert getattr(holder, HASH_KEYS)(pruned, 0, 4, 0) == ((("slimwise", "abc"),), 0)


def test_a_request_that_met_no_chooser_is_refused_where_there_are_pools(monkeypatch):
    from vllm.v1.engine.core import EngineCore

    monkeypatch.setattr(EngineCore, "preprocess_add_request", lambda _, request: (request, 7))
    register()
    stranger, known = request(other=1), request(slimwise_assigned=[0, 0, "", "", -1])
    for engine, accepted in ((of_engine(None), stranger), (of_engine(POOLS), known)):
        assert EngineCore.preprocess_add_request(engine, accepted) == (accepted, 7)
    with pytest.raises(ConfigError, match="request r1 has no pools"):
        EngineCore.preprocess_add_request(of_engine(POOLS), stranger)


def test_a_frontend_without_plugins_is_refused_before_a_worker_starts(monkeypatch):
    from vllm.v1.worker.worker_base import WorkerWrapperBase

    started = []
    monkeypatch.setattr(WorkerWrapperBase, "init_device", started.append)
    monkeypatch.setenv("VLLM_USE_RUST_FRONTEND", "1")
    register()
    with pytest.raises(ConfigError, match="VLLM_USE_RUST_FRONTEND"):
        WorkerWrapperBase.init_device(of_engine(POOLS))
    assert not started
    WorkerWrapperBase.init_device(of_engine(None))
    assert started


def test_answers_that_would_share_a_transfer_are_refused_without_pools_too(monkeypatch):
    from vllm.exceptions import VLLMValidationError
    from vllm.v1.engine.input_processor import InputProcessor

    monkeypatch.setattr(InputProcessor, "process_inputs", lambda *_: "accepted")
    register()
    transfer = {"kv_transfer_params": {"do_remote_prefill": True}}
    request: Any = "r1", "a prompt", SimpleNamespace(n=2, extra_args=transfer), ()
    alone, linked = of_engine(None), of_engine(None)
    linked.vllm_config.kv_transfer_config = object()
    assert InputProcessor.process_inputs(alone, *request) == "accepted"
    with pytest.raises(VLLMValidationError, match="2 answers in one request"):
        InputProcessor.process_inputs(linked, *request)
