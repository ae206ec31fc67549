import pytest

from slimwise.core.vocabulary import MoeKernels
from slimwise.engine.command import Device
from slimwise.sweep.kernels import logged_kernels

_USED = "INFO [fused_moe.py:1] Using configuration from {} for MoE layer."
_FILE = "E=128,N=512,device_name=NVIDIA_H200.json"


@pytest.mark.parametrize(
    ("log", "device", "kernels"),
    [
        (
            _USED.format(f"/env/vllm/model_executor/layers/fused_moe/configs/{_FILE}"),
            Device.CUDA,
            MoeKernels.SHIPPED,
        ),
        (_USED.format(f"/study/moe_kernels/{_FILE}"), Device.CUDA, MoeKernels.TUNED),
        ("WARNING Using default MoE config. Config file not", Device.CUDA, MoeKernels.DEFAULT),
        ("a log of warnings alone", Device.CUDA, MoeKernels.UNKNOWN),
        ("a log of warnings alone", Device.CPU, MoeKernels.DEFAULT),
    ],
)
def test_the_log_says_where_settings_are_from(log, device, kernels):
    assert logged_kernels(log, device) is kernels
