import json

import pytest

from slimwise.core.vocabulary import MoeKernels
from slimwise.errors import ConfigError
from slimwise_vllm.decode_bench.kernel_choice import KernelChoice

TUNED = {"BLOCK_SIZE_M": 16}


@pytest.fixture
def config_of_step(monkeypatch):
    """A function to the setting that vLLM takes; its look-up is as new afterwards."""
    from vllm import envs
    from vllm.model_executor.layers.fused_moe import fused_moe

    monkeypatch.delenv("VLLM_TUNED_CONFIG_FOLDER", raising=False)
    envs.enable_envs_cache()
    yield lambda: fused_moe.try_get_optimal_moe_config((8, 64, 16), (8, 16, 32), 4, None, 8)
    monkeypatch.undo()
    envs.disable_envs_cache()
    fused_moe.get_moe_configs.cache_clear()


def test_vllm_finds_what_was_chosen_last(tmp_path, config_of_step):
    (tmp_path / "E=8,N=32,device_name=cpu.json").write_text(json.dumps({"8": TUNED}))
    choice = KernelChoice(tmp_path, 8, 32)
    seen = []
    for tuned in (False, True, True, False):
        choice.use(tuned)
        seen.append(config_of_step() == TUNED)
    assert seen == [False, True, True, False]
    assert choice.found == {False: MoeKernels.DEFAULT, True: MoeKernels.TUNED}


def test_tuned_kernels_must_be_there(tmp_path, config_of_step):
    with pytest.raises(ConfigError, match="has no E=8,N=32,device_name=cpu"):
        KernelChoice(tmp_path, 8, 32).use(True)
    with pytest.raises(ConfigError, match="kernel_folder None"):
        KernelChoice(None, 8, 32).use(True)
