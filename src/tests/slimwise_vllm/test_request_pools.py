from pathlib import Path
from types import SimpleNamespace

import pytest

from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import ServingMode
from slimwise.errors import ConfigError
from slimwise_vllm.pools import Pools, PrunedPool
from slimwise_vllm.request_pools import PhasePools, PoolChooser, assigned_pools
from slimwise_vllm.settings import PluginSettings


@pytest.fixture
def pools() -> Pools:
    keep_sets = {"half": KeepSet(((0, 1),), 4, 1), "small": KeepSet(((2,),), 4, 1)}
    return Pools(
        tuple(PrunedPool(name, Path(name), kept, "digest") for name, kept in keep_sets.items())
    )


@pytest.fixture
def chooser(pools) -> PoolChooser:
    files = {name: PoolFiles(keep_set=Path(name)) for name in ("half", "small")}
    return PoolChooser(
        pools, PluginSettings(pools=files, default_pool="half", default_mode=ServingMode.SLIMWISE)
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (None, (0, 1)),
        ({"kv_transfer_params": {}}, (0, 1)),
        ({"slimwise_mode": "full"}, (0, 0)),
        ({"slimwise_mode": "pruned"}, (1, 1)),
        ({"slimwise_mode": "reverse"}, (1, 0)),
        ({"slimwise_pool": "small"}, (0, 2)),
        ({"slimwise_mode": "pruned", "slimwise_pool": "small"}, (2, 2)),
        ({"slimwise_prefill_pool": "half", "slimwise_decode_pool": "small"}, (1, 2)),
        ({"slimwise_decode_pool": "small"}, (0, 2)),
        ({"slimwise_mode": "slimwise", "slimwise_pool": "full"}, (0, 0)),
    ],
)
def test_modes_and_pools_are_pairs_of_pools(chooser, arguments, expected):
    assert chooser.choose(arguments) == PhasePools(*expected)


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"slimwise_mode": "fast"}, "'fast' does not exist: .*full, pruned, slimwise, reverse"),
        ({"slimwise_mode": 3}, "slimwise_mode=3 must be a name"),
        ({"slimwise_pool": "other"}, "'other' does not exist: .*'half', 'small'"),
        ({"slimwise_pool": ""}, "'' does not exist: .*'half', 'small'"),
        ({"slimwise_mod": "full"}, "slimwise_mod is not an argument: .*slimwise_mode"),
        ({"slimwise": "full"}, "slimwise is not an argument"),
        ({"slimwise_assigned": [1, 1, "", "", 0]}, "slimwise_assigned is not an argument"),
        ({"slimwise_mode": "full", "slimwise_decode_pool": "half"}, "not both"),
    ],
)
def test_what_cannot_be_meant_is_refused(chooser, arguments, fault):
    with pytest.raises(ConfigError, match=fault):
        chooser.choose(arguments)


def test_a_changed_default_reaches_only_requests_to_come(chooser):
    before = chooser.assign(None)
    chooser.set_default("reverse", "small")
    after = chooser.assign(None)
    found = [assigned_pools(SimpleNamespace(extra_args=a)) for a in (before, after)]
    assert [assigned and assigned.pools for assigned in found] == [(0, 1), (2, 0)]


@pytest.mark.parametrize(
    ("mode", "pool"), [("fast", None), ("", None), ("pruned", "other"), (None, "")]
)
def test_a_bad_default_leaves_the_old_one(chooser, mode, pool):
    before = chooser.default
    with pytest.raises(ConfigError):
        chooser.set_default(mode, pool)
    assert chooser.default == before


def test_a_record_travels_in_a_copy_of_the_arguments(chooser, pools):
    arguments = {"slimwise_mode": "pruned", "other": 1}
    assigned = assigned_pools(SimpleNamespace(extra_args=chooser.assign(arguments)))
    assert arguments == {"slimwise_mode": "pruned", "other": 1}
    assert assigned is not None
    assert assigned.digests == (pools.digests[1], pools.digests[1])
    assert assigned.first_decode_offset == -1


def test_a_prefill_server_computes_nothing_but_prefill(chooser, pools):
    """Of a hybrid's prompt, NIXL keeps the last token from it, so its last is not the boundary."""
    arguments = {"slimwise_pool": "small", "kv_transfer_params": {"do_remote_decode": True}}
    assigned = assigned_pools(SimpleNamespace(extra_args=chooser.assign(arguments)))
    assert assigned is not None
    assert assigned.pools == (0, 0)
    received = arguments | {"kv_transfer_params": {"do_remote_prefill": True}}
    assigned = assigned_pools(SimpleNamespace(extra_args=chooser.assign(received)))
    assert assigned is not None
    assert assigned.digests == ("", pools.digests[2])


@pytest.mark.parametrize("parameters", [None, SimpleNamespace(extra_args=None)])
def test_a_request_that_met_no_chooser_has_no_pools(parameters):
    assert assigned_pools(parameters) is None
