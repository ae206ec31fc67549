"""Settings of the MoE kernel as files of vLLM's own name and format.

vLLM looks for them in the folder that VLLM_TUNED_CONFIG_FOLDER names before its own.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from slimwise.artifacts.atomic import atomic_file
from slimwise_vllm.moe_tuning.candidates import KernelConfig
from slimwise_vllm.moe_tuning.layer import ExpertShape

_VERSION = "triton_version"


def file_name(shape: ExpertShape) -> str:
    """For example E=64,N=512,device_name=NVIDIA_H200.json."""
    from vllm.model_executor.layers.fused_moe.fused_moe import get_config_file_name

    return get_config_file_name(shape.num_experts, shape.expert_width, None)


def write_kernel_file(path: Path, configs: Mapping[int, KernelConfig], triton_version: str) -> None:
    """The settings by batch, batches ascending."""
    by_batch = {str(batch): configs[batch] for batch in sorted(configs)}
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as temporary:
        text = json.dumps({_VERSION: triton_version, **by_batch}, indent=4)
        temporary.write_text(text + "\n", encoding="utf-8")


def shipped_config(shape: ExpertShape, batch: int) -> KernelConfig | None:
    """What vLLM ships for the shape on this device and takes for the batch, if it ships any."""
    from vllm.model_executor.layers.fused_moe import fused_moe

    path = Path(fused_moe.__file__).parent / "configs" / file_name(shape)
    if not path.is_file():
        return None
    configs = json.loads(path.read_text(encoding="utf-8"))
    configs.pop(_VERSION, None)
    return configs[min(configs, key=lambda tuned: abs(int(tuned) - batch))]


def default_config(shape: ExpertShape, batch: int) -> KernelConfig:
    """What vLLM takes where there is no file."""
    from vllm.model_executor.layers.fused_moe.fused_moe import get_default_config

    config = get_default_config(
        batch, shape.num_experts, shape.expert_width, shape.hidden_width, shape.top_k, None
    )
    return {name: value for name, value in config.items() if name != "SPLIT_K"}
