import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from slimwise_vllm.request_pools import PhasePools
from slimwise_vllm.token_pools import StepBatch, TokenPools

NUM_KEPT = (16, 8, 5)
_REQUEST = st.tuples(
    st.tuples(st.integers(0, 2), st.integers(0, 2)),
    st.integers(1, 20),
    st.integers(0, 25),
    st.integers(1, 9),
)


def batch(requests):
    pools, *counts = zip(*requests, strict=True)
    return StepBatch([PhasePools(*pair) for pair in pools], *map(np.array, counts))


def filled(requests, num_rows=64, offset=-1):
    buffers = TokenPools(num_rows, NUM_KEPT, torch.device("cpu"))
    lengths = buffers.fill(batch(requests), offset)
    return buffers.pool_T.tolist(), buffers.phase_T.tolist(), lengths.tolist()


@given(st.lists(_REQUEST, min_size=1, max_size=7), st.integers(-3, 0))
def test_every_token_gets_the_pool_of_its_position(requests, offset):
    pools, phases, lengths = filled(requests, offset=offset)
    expected = [
        (pair[is_decode], int(is_decode))
        for pair, num_prompt, num_computed, num_scheduled in requests
        for position in range(num_computed, num_computed + num_scheduled)
        for is_decode in [position >= max(num_prompt + offset, 0)]
    ]
    found = list(zip(pools, phases, strict=True))
    assert found[: len(expected)] == expected
    assert all(phase == 2 for _, phase in found[len(expected) :])
    assert lengths == [sum(phase == code for _, phase in expected) for code in (0, 1)]


def test_the_last_prompt_token_is_the_first_decode_token():
    pools, phases, _ = filled([((0, 1), 5, 0, 5)], num_rows=6)
    assert pools == [0, 0, 0, 0, 1, 1]
    assert phases == [0, 0, 0, 0, 1, 2]


def test_a_chunk_of_one_token_before_the_boundary_is_prefill():
    assert filled([((0, 1), 5, 3, 1)], num_rows=1)[0] == [0]
    assert filled([((0, 1), 5, 4, 1)], num_rows=1)[0] == [1]


def test_recomputation_after_preemption_keeps_prompt_and_answer_apart():
    assert filled([((0, 1), 3, 0, 6)], num_rows=6)[0] == [0, 0, 1, 1, 1, 1]


def test_padding_gets_the_smallest_decode_pool_of_the_step():
    requests = [((0, 1), 1, 4, 1), ((1, 2), 1, 4, 1), ((2, 0), 1, 4, 1)]
    assert filled(requests, num_rows=5)[0] == [1, 2, 0, 2, 2]
    assert filled([((1, 0), 1, 4, 1)], num_rows=3)[0] == [0, 0, 0]


def test_a_cleared_buffer_is_padding_on_the_full_pool():
    buffers = TokenPools(4, NUM_KEPT, torch.device("cpu"))
    address = buffers.pool_T.data_ptr()
    buffers.fill(batch([((1, 1), 2, 0, 3)]), -1)
    buffers.clear()
    assert buffers.pool_T.tolist() == [0, 0, 0, 0]
    assert buffers.phase_T.tolist() == [2, 2, 2, 2]
    assert buffers.pool_T.data_ptr() == address
