"""The wrapped functions of vLLM, without an engine."""

import functools
import importlib
from types import SimpleNamespace

import pytest

from slimwise_vllm.plugin import register
from slimwise_vllm.prefix_cache import HASH_KEYS, HASHING_MODULES


def request(**extra_args):
    parameters = SimpleNamespace(extra_args=extra_args)
    return SimpleNamespace(sampling_params=parameters, num_prompt_tokens=5)


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
