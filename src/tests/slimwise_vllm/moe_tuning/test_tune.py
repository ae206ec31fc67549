import json
from dataclasses import asdict

import pytest

from slimwise_vllm.moe_tuning import kernel_files
from slimwise_vllm.moe_tuning.candidates import kernel_config
from slimwise_vllm.moe_tuning.kernel_files import (
    default_config,
    file_name,
    shipped_config,
    write_kernel_file,
)
from slimwise_vllm.moe_tuning.layer import ExpertShape
from slimwise_vllm.moe_tuning.plan import TuningPlan
from slimwise_vllm.moe_tuning.tune import KnownKernels

SHAPE = ExpertShape(128, 256, 8, 2048, 512)
SMALL, LARGE = kernel_config((16, 64, 64), 1, 4, 3), kernel_config((64, 128, 64), 1, 8, 3)


@pytest.fixture
def plan(tmp_path):
    return TuningPlan(
        model_config_file=tmp_path / "config.json", num_experts=(128,), batches=(64, 1)
    )


CONDITIONS = {"device": "H200", "skew_strength": 0.166, "triton": "3.6.0"}


def row(batch, config, shape=SHAPE, **changes):
    found = {"shape": asdict(shape), "batch": batch, "config": config}
    return {**CONDITIONS, **found, **changes}


@pytest.mark.parametrize(
    "other", [{"device": "A100"}, {"skew_strength": 0.0}, {"triton": "3.7.0"}, {"triton": None}]
)
def test_only_rows_of_these_conditions_and_this_shape_are_known(plan, other):
    small = ExpertShape(64, 256, 8, 2048, 512)
    rows = [row(64, SMALL), row(1, LARGE, **other), row(1, LARGE, shape=small)]
    known = KnownKernels(json.loads(json.dumps(rows)), CONDITIONS)
    assert known.missing(SHAPE, plan) == [1]
    known.add(row(1, LARGE))
    assert known.missing(SHAPE, plan) == []
    assert known.of(SHAPE, plan) == {64: SMALL, 1: LARGE}


def test_vllm_takes_the_nearest_batch_of_our_file(tmp_path, monkeypatch):
    from vllm import envs
    from vllm.model_executor.layers.fused_moe import fused_moe

    envs.disable_envs_cache()
    monkeypatch.setenv("VLLM_TUNED_CONFIG_FOLDER", str(tmp_path))
    fused_moe.get_moe_configs.cache_clear()
    write_kernel_file(tmp_path / file_name(SHAPE), {64: LARGE, 1: SMALL}, "3.6.0")
    shapes = (128, 1024, 2048), (128, 2048, 512)
    taken = [fused_moe.try_get_optimal_moe_config(*shapes, 8, None, batch) for batch in (3, 40)]
    fused_moe.get_moe_configs.cache_clear()
    assert taken == [SMALL, LARGE]


def test_what_vllm_ships_is_found_whatever_folder_is_set(monkeypatch):
    monkeypatch.setattr(
        kernel_files, "file_name", lambda _: "E=128,N=512,device_name=NVIDIA_H200.json"
    )
    shipped = shipped_config(SHAPE, 60)
    assert shipped is not None
    assert shipped.keys() == SMALL.keys()
    monkeypatch.setattr(kernel_files, "file_name", lambda _: "E=128,N=512,device_name=none.json")
    assert shipped_config(SHAPE, 60) is None


def test_the_default_has_the_words_of_a_file():
    assert default_config(SHAPE, 64).keys() == SMALL.keys()
