"""The model that calibration observes, loaded without its LM head."""

import sys
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM

from slimwise.artifacts.backbone_record import BackboneRecord
from slimwise.calibrate.config import CalibrationConfig
from slimwise.errors import BackboneError, ConfigError


def load_decoder(record: BackboneRecord, config: CalibrationConfig) -> Any:
    """The decoder in evaluation mode; a wrapper's vision tower is not loaded.

    BackboneError if a tensor is missing, which would otherwise be drawn at random.
    """
    if not sys.stderr.isatty():
        transformers.logging.disable_progress_bar()
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        record.model,
        dtype=getattr(torch, config.dtype),
        local_files_only=True,
        output_loading_info=True,
    )
    model, report = loaded
    absent = sorted(report["missing_keys"]) + sorted(map(str, report["mismatched_keys"]))
    if absent:
        raise BackboneError(
            f"{record.model} does not fill the model: {len(absent)} tensors are missing or of "
            f"another shape, first {absent[0]}. Fetch the checkpoint again."
        )
    decoder = getattr(model.base_model, "language_model", model.base_model)
    return decoder.to(_device(config)).eval()


def _device(config: CalibrationConfig) -> str:
    has_cuda = torch.cuda.is_available()
    if config.device == "cuda" and not has_cuda:
        raise ConfigError("calibration.device = 'cuda', but no GPU is visible. Set it to 'auto'.")
    return ("cuda" if has_cuda else "cpu") if config.device == "auto" else config.device
