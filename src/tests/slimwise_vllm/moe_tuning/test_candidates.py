import pytest

from slimwise_vllm.moe_tuning.candidates import all_candidates, candidates

H200_SHARED_BYTES = 232_448


@pytest.mark.parametrize("load", [1 / 32, 2, 8, 32, 512])
def test_every_candidate_fits_the_shared_memory_of_a_block(load):
    for config in candidates(load):
        tile = config["BLOCK_SIZE_M"] + config["BLOCK_SIZE_N"]
        stages = tile * config["BLOCK_SIZE_K"] * 2 * config["num_stages"]
        assert stages <= H200_SHARED_BYTES


@pytest.mark.parametrize(
    ("load", "tiles"), [(2, {16}), (8, {16, 32}), (32, {16, 32, 64, 128}), (512, {64, 128})]
)
def test_tiles_follow_the_tokens_of_an_expert(load, tiles):
    assert {config["BLOCK_SIZE_M"] for config in candidates(load)} == tiles


def test_loads_that_share_candidates_time_them_once():
    assert all_candidates([2, 2, 4]) == list(candidates(2))
