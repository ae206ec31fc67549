"""Which settings of the MoE kernel a running engine finds: those that vLLM has, or tuned ones.

vLLM looks when it launches a kernel, so that a CUDA graph keeps what was found at its capture.
"""

import os
from pathlib import Path

from slimwise.core.vocabulary import MoeKernels
from slimwise.errors import ConfigError

TUNED_FOLDER = "VLLM_TUNED_CONFIG_FOLDER"


class KernelChoice:
    """Turns vLLM's look-up of the settings for one shape of experts.

    found has what each choice that was used came to, by whether it was the tuned one.
    """

    def __init__(self, folder: Path | None, num_experts: int, expert_width: int) -> None:
        """folder has files of vLLM's name; None if the engine never takes any from there."""
        self._folder = folder
        self._shape = num_experts, expert_width
        self._tuned: bool | None = None
        self.found: dict[bool, MoeKernels] = {}

    def use(self, tuned: bool) -> None:
        """Let vLLM find these settings from now on; ConfigError if the folder has none."""
        if tuned == self._tuned:
            return
        self._tuned = tuned
        self._point_to(self._tuned_folder() if tuned else None)
        if tuned:
            self.found[tuned] = MoeKernels.TUNED
        else:
            self.found[tuned] = MoeKernels.SHIPPED if self._has_settings() else MoeKernels.DEFAULT

    def _point_to(self, folder: Path | None) -> None:
        from vllm import envs
        from vllm.model_executor.layers.fused_moe.fused_moe import get_moe_configs

        # A started engine keeps the environment that it found.
        envs.disable_envs_cache()
        os.environ.pop(TUNED_FOLDER, None)
        if folder is not None:
            os.environ[TUNED_FOLDER] = str(folder)
        envs.enable_envs_cache()
        get_moe_configs.cache_clear()

    def _has_settings(self) -> bool:
        from vllm.model_executor.layers.fused_moe.fused_moe import get_moe_configs

        return get_moe_configs(*self._shape, None) is not None

    def _tuned_folder(self) -> Path:
        from vllm.model_executor.layers.fused_moe.fused_moe import get_config_file_name

        name = get_config_file_name(*self._shape, None)
        if self._folder is None or not (self._folder / name).is_file():
            raise ConfigError(
                f"an arm wants tuned kernels, and kernel_folder {self._folder} has no {name}. Tune "
                "them with slimwise_vllm.moe_tuning.run, or leave out the arm."
            )
        return self._folder.resolve()
