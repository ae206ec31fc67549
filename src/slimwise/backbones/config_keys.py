"""Values of a checkpoint's configuration, under whichever key a family gives them."""

from collections.abc import Mapping
from typing import Any

from slimwise.backbones.base import Config
from slimwise.errors import BackboneError

# transformers writes the second name for families whose configuration class maps the first to it.
_EXPERT_COUNT_KEYS = ("num_experts", "num_local_experts")
_DTYPE_KEYS = ("dtype", "torch_dtype")


def count(config: Config, key: str) -> int:
    """A positive whole number; BackboneError naming the key if it is missing or something else."""
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BackboneError(
            f"config.json says {key} = {value!r}; expected a whole number >= 1. Use the "
            "configuration that was published with the weights."
        )
    return value


def num_experts(config: Config) -> int:
    """The expert count under whichever of its names the configuration has."""
    keys = [key for key in _EXPERT_COUNT_KEYS if key in config]
    return count(config, keys[0] if keys else _EXPERT_COUNT_KEYS[0])


def context_tokens(config: Config) -> int:
    """Positions that the model was made for."""
    return count(config.get("text_config", config), "max_position_embeddings")


def with_num_experts(config: Config, num_kept: int) -> dict[str, Any]:
    """The configuration with another expert count, under the names that it already has."""
    counts = {key: num_kept for key in _EXPERT_COUNT_KEYS if key in config}
    return {**config, **counts}


def dtype(*configs: Config) -> str:
    """The type that the first of the configurations with one states."""
    for config, key in ((config, key) for config in configs for key in _DTYPE_KEYS):
        if isinstance(config.get(key), str):
            return config[key].removeprefix("torch.")
    raise BackboneError(
        'config.json states no dtype. Add the type of the weights, such as "dtype": "bfloat16".'
    )


def text_part(config: Config, wrapper_type: str) -> Config:
    """The text model's configuration: text_config of a wrapper, else the whole.

    BackboneError if a wrapper nests none.
    """
    if config.get("model_type") != wrapper_type:
        return config
    text = config.get("text_config")
    if not isinstance(text, Mapping):
        raise BackboneError(
            f"config.json has no text_config, which model_type {wrapper_type!r} needs. Use the "
            "configuration that was published with the weights."
        )
    return text


def with_text_part(config: Config, wrapper_type: str, text: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with another text part, nested where the configuration nests it."""
    is_wrapper = config.get("model_type") == wrapper_type
    return {**config, "text_config": dict(text)} if is_wrapper else dict(text)
