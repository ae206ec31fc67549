"""Model folders that hold a configuration only, and keep sets for them."""

import json
from pathlib import Path
from typing import Any

from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.core.skew import popular_keep_set
from slimwise.core.vocabulary import Criterion
from slimwise.errors import ConfigError
from slimwise.provenance import current_provenance

_EXPERTS = "num_experts"
_LAYERS = "num_hidden_layers"
_TOP_K = "num_experts_per_tok"


def write_model_folder(config_file: Path, num_experts: int, folder: Path) -> Path:
    """A folder from which vLLM makes the model with num_experts experts and random weights."""
    config = json.loads(config_file.read_text("utf-8"))
    _text(config, config_file)[_EXPERTS] = num_experts
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    return folder


def moe_shape(config_file: Path) -> tuple[int, int, int]:
    """MoE layers (all layers), experts and top-k that the configuration names."""
    text = _text(json.loads(config_file.read_text("utf-8")), config_file)
    return text[_LAYERS], text[_EXPERTS], text[_TOP_K]


def expert_widths(config_file: Path) -> tuple[int, int]:
    """Hidden width, and the width of a routed expert."""
    text = _text(json.loads(config_file.read_text("utf-8")), config_file)
    return text["hidden_size"], text["moe_intermediate_size"]


def vocabulary_size(config_file: Path) -> int:
    """Token ids that the model of that config.json knows."""
    return _text(json.loads(config_file.read_text("utf-8")), config_file)["vocab_size"]


def write_popular_keep_set(config_file: Path, num_kept: int, seed: int, path: Path) -> Path:
    """The keep set of the num_kept experts that a skewed router prefers."""
    keep_set = popular_keep_set(moe_shape(config_file), num_kept, seed)
    record = KeepSetRecord(keep_set, Criterion.REAP, "random weights", "")
    write_keep_set(path, record, current_provenance())
    return path


def _text(config: dict[str, Any], config_file: Path) -> dict[str, Any]:
    text = config.get("text_config", config)
    missing = [key for key in (_EXPERTS, _LAYERS, _TOP_K) if key not in text]
    if missing:
        raise ConfigError(
            f"{config_file} names no {', '.join(missing)}. Give the config.json of an MoE."
        )
    return text
