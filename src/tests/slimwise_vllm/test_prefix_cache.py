from types import SimpleNamespace

import pytest

from slimwise_vllm.prefix_cache import pool_salt, with_pool_salt
from slimwise_vllm.request_pools import AssignedPools, PhasePools

MODES = {
    "full": AssignedPools(PhasePools(0, 0), ("", ""), -1),
    "pruned": AssignedPools(PhasePools(1, 1), ("abc", "abc"), -1),
    "slimwise": AssignedPools(PhasePools(0, 1), ("", "abc"), -1),
    "reverse": AssignedPools(PhasePools(1, 0), ("abc", ""), -1),
    "two_pools": AssignedPools(PhasePools(2, 1), ("def", "abc"), -1),
}


def pools_of_tokens(assigned, num_prompt_tokens, start, end):
    """The truth, token by token."""
    first_decode = num_prompt_tokens + assigned.first_decode_offset
    return [assigned.digests[position >= first_decode] for position in range(start, end)]


@pytest.mark.parametrize("block_size", [1, 4])
def test_two_blocks_share_a_salt_exactly_if_their_tokens_share_pools(block_size):
    seen = {}
    for assigned in MODES.values():
        for num_prompt_tokens in range(1, 14):
            for start in range(0, 16, block_size):
                span = start, start + block_size
                truth = tuple(pools_of_tokens(assigned, num_prompt_tokens, *span))
                salt = pool_salt(assigned, num_prompt_tokens, *span)
                assert seen.setdefault(truth, salt) == salt
    assert len(set(seen.values())) == len(seen)
    assert seen[("",) * block_size] is None


def request(assigned):
    record = [*assigned.pools, *assigned.digests, assigned.first_decode_offset]
    parameters = SimpleNamespace(extra_args={"slimwise_assigned": record})
    return SimpleNamespace(sampling_params=parameters, num_prompt_tokens=5)


def test_the_salt_follows_the_keys_that_vllm_has():
    salted = with_pool_salt(lambda *_: ((("lora", "a", "b"),), 7))
    assert salted(request(MODES["slimwise"]), 0, 4, 0) == ((("lora", "a", "b"),), 7)
    expected = (("lora", "a", "b"), ("slimwise", "abc"))
    assert salted(request(MODES["slimwise"]), 4, 8, 0) == (expected, 7)


def test_a_full_request_keeps_the_keys_of_an_unpatched_vllm():
    salted = with_pool_salt(lambda *_: (None, 0))
    plain = SimpleNamespace(sampling_params=None, num_prompt_tokens=5)
    assert salted(plain, 0, 4, 0) == (None, 0)
    assert salted(request(MODES["full"]), 4, 8, 0) == (None, 0)
