"""Random weights whose routers prefer some experts, as a load format of vLLM."""

from dataclasses import replace
from typing import Any

from vllm.config import ModelConfig
from vllm.config.load import LoadConfig
from vllm.model_executor.model_loader import DummyModelLoader

from slimwise.core.skew import Skew, expert_scales
from slimwise.errors import ConfigError
from slimwise_vllm.router_skew import RouterSkew


class SkewedWeights(DummyModelLoader):
    """vLLM's random weights; a model of fewer experts than the full one has its most popular."""

    def __init__(self, load_config: LoadConfig) -> None:
        super().__init__(replace(load_config, model_loader_extra_config={}))
        told: Any = load_config.model_loader_extra_config
        try:
            self._skew = Skew(**told)
        except TypeError as failure:
            raise ConfigError(
                f"--model-loader-extra-config {told} is no skew of routers: {failure}. Give "
                "strength, num_experts and seed."
            ) from failure

    def load_weights(self, model: Any, model_config: ModelConfig) -> None:
        """Draw all weights, then scale the rows of every router."""
        super().load_weights(model, model_config)
        num_experts = model_config.get_num_experts()
        num_layers = model_config.get_total_num_hidden_layers()
        scales_E = expert_scales(self._skew.num_experts, num_experts, self._skew.strength)
        RouterSkew(model, num_layers, num_experts, self._skew.seed).apply(scales_E)
