"""A checkpoint as a transformers model, on the devices where it will compute, and its tokenizer."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

from slimwise.errors import BackboneError


def load_causal_model(folder: Path, dtype: str, devices: Sequence[torch.device]) -> Any:
    """The causal language model in evaluation mode, spread over the devices if they are several.

    A wrapper's vision tower is not loaded. BackboneError if a tensor is missing, which would
    otherwise be drawn at random, or if the devices are too small for the model. FP8 weights are
    dequantised to the dtype as they are read, on GPUs too.
    """
    if not sys.stderr.isatty():
        transformers.logging.disable_progress_bar()
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        folder,
        config=_dequantised(AutoConfig.from_pretrained(folder, local_files_only=True)),
        dtype=getattr(torch, dtype),
        local_files_only=True,
        use_safetensors=True,
        output_loading_info=True,
        **_placement(devices),
    )
    model, report = loaded
    absent = sorted(report["missing_keys"]) + sorted(map(str, report["mismatched_keys"]))
    if absent:
        raise BackboneError(
            f"{folder} does not fill the model: {len(absent)} tensors are missing or of another "
            f"shape, first {absent[0]}. Fetch the checkpoint again."
        )
    _check_placement(folder, model, len(devices))
    return model.eval()


def load_tokenizer(folder: Path) -> Any:
    """The model's tokenizer, which has a chat template; BackboneError if there is none."""
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as failure:
        raise BackboneError(
            f"the tokenizer of {folder} cannot be loaded: {failure}. Copy tokenizer.json and "
            "tokenizer_config.json of the model there."
        ) from failure
    if tokenizer.chat_template is None:
        raise BackboneError(
            f"{folder} has no chat template, and conversations are read in one. Put the "
            "chat_template.jinja of the model, or of its instruction-tuned sibling, there."
        )
    return tokenizer


def language_decoder(model: Any) -> Any:
    """The decoder of a loaded model without LM head and towers."""
    return getattr(model.base_model, "language_model", model.base_model)


def _dequantised(config: Any) -> Any:
    """The configuration, by which FP8 experts become the modules that an observer knows."""
    stored = getattr(config, "quantization_config", None) or {}
    if stored.get("quant_method") == "fp8":
        config.quantization_config = {**stored, "dequantize": True}
    return config


def _placement(devices: Sequence[torch.device]) -> dict[str, Any]:
    """Where weights go as they are read: on GPUs without a copy in host memory."""
    if len(devices) > 1:
        limits = {device.index: torch.cuda.mem_get_info(device)[0] for device in devices}
        return {"device_map": "balanced", "max_memory": limits}
    return {"device_map": {"": devices[0]}} if devices[0].type == "cuda" else {}


def _check_placement(folder: Path, model: Any, num_devices: int) -> None:
    outside = [
        name
        for name, place in getattr(model, "hf_device_map", {}).items()
        if num_devices > 1 and str(place) in ("cpu", "disk")
    ]
    if outside:
        raise BackboneError(
            f"{folder} does not fit {num_devices} GPUs: {outside[0]} and {len(outside) - 1} more "
            "modules would stay outside. Spread it over more, or free their memory."
        )
