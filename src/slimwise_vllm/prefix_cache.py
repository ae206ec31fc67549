"""Keeps KV of one pool from being reused as another pool's: the hash of a block names its pools.

Hashes are chained, so a block's hash also answers for the pools of everything before it.
"""

from collections.abc import Callable
from typing import Any

from slimwise_vllm.request_pools import AssignedPools, assigned_pools

HashKeys = tuple[tuple[Any, ...] | None, int]
HASH_KEYS = "generate_block_hash_extra_keys"
HASHING_MODULES = ("vllm.v1.core.kv_cache_utils", "vllm.v1.core.block_pool")
"""Of vLLM, with the function of that name; the second hashes the blocks of KV events with it."""
_TAG = "slimwise"


def pool_salt(
    assigned: AssignedPools, num_prompt_tokens: int, start: int, end: int
) -> tuple[str, str] | None:
    """Hash key of the tokens start..end of a request, or None if all ran on the full pool.

    Tagged like vLLM's own keys. A block across the boundary also names where in it decode begins.
    """
    first_decode = max(num_prompt_tokens + assigned.first_decode_offset, 0)
    num_prefill = min(max(first_decode - start, 0), end - start)
    prefill, decode = assigned.digests
    if prefill == decode or num_prefill == end - start:
        return (_TAG, prefill) if prefill else None
    if num_prefill == 0:
        return (_TAG, decode) if decode else None
    return (_TAG, f"{prefill}:{num_prefill}:{decode}")


def with_pool_salt(hash_keys: Callable[..., HashKeys]) -> Callable[..., HashKeys]:
    """vLLM's hash keys of a block, followed by the salt of its pools if there is one."""

    def salted(request: Any, start: int, end: int, *args: Any, **kwargs: Any) -> HashKeys:
        keys, next_item = hash_keys(request, start, end, *args, **kwargs)
        assigned = assigned_pools(request.sampling_params)
        salt = assigned and pool_salt(assigned, request.num_prompt_tokens, start, end)
        return ((*(keys or ()), salt) if salt else keys), next_item

    return salted
