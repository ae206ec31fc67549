import pytest

from slimwise.report.measured.kernel_tuning import kernel_tuning_table

SETTING = {
    "BLOCK_SIZE_M": 16,
    "BLOCK_SIZE_N": 64,
    "BLOCK_SIZE_K": 128,
    "GROUP_SIZE_M": 1,
    "num_warps": 4,
    "num_stages": 3,
}


def row(num_experts: int, batch: int, layer_us: dict[str, float]) -> dict:
    return {
        "device": "one GPU",
        "shape": {"num_experts": num_experts, "top_k": 8},
        "batch": batch,
        "distinct_experts": 60.5,
        "config": SETTING,
        "layer_us": layer_us,
        "triton": "3.6.0",
        "commit": "abc1234",
        "date": "2026-11-30",
        "hardware": "one GPU",
    }


def test_tuned_times_are_compared_with_what_vllm_takes():
    rows = [
        row(64, 64, {"tuned": 9.0, "default": 9.0}),
        row(128, 64, {"tuned": 10.0, "default": 14.0, "shipped": 12.0}),
        row(64, 16, {"tuned": 5.0, "default": 6.0}),
        row(64, 64, {"tuned": 8.0, "default": 10.0}),
    ]
    table = kernel_tuning_table(rows, backbone="a model")
    shown = table[["num_experts", "batch", "vllm_to_tuned"]].to_numpy().tolist()
    assert shown == [[128, 64, pytest.approx(1.2)], [64, 16, 1.2], [64, 64, 1.25]]
    assert table["layer_us_shipped"].notna().tolist() == [True, False, False]
    assert table["setting"].iloc[0] == "16 x 64 x 128, 4, 3"
