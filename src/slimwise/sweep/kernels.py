"""Where a server has the settings of its MoE kernel from, by its log."""

import re

from slimwise.core.vocabulary import MoeKernels
from slimwise.engine.command import Device

_SETTINGS_FILE = re.compile(r"Using configuration from (\S+) for MoE layer")
"""Logged as information if vLLM has a file of settings for the shape and device."""
_NO_SETTINGS_FILE = "Using default MoE config"
"""Warned of otherwise."""
_SHIPPED = "/vllm/model_executor/"


def logged_kernels(log: str, device: Device) -> MoeKernels:
    """What the log says; unknown if it leaves information out. CPU kernels have no settings."""
    found = _SETTINGS_FILE.search(log)
    if found is not None:
        return MoeKernels.SHIPPED if _SHIPPED in found[1] else MoeKernels.TUNED
    if _NO_SETTINGS_FILE in log or device is Device.CPU:
        return MoeKernels.DEFAULT
    return MoeKernels.UNKNOWN
