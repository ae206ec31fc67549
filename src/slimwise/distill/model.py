"""The model that is distilled, frozen, on this process's device."""

import sys
from typing import Any

import torch
import transformers
from transformers import AutoModelForCausalLM

from slimwise.artifacts.backbone_record import BackboneRecord
from slimwise.backbones.linear_attention import use_blocked_delta_rule
from slimwise.errors import BackboneError


def load_model(record: BackboneRecord, dtype: str, device: torch.device) -> Any:
    """The causal language model; a wrapper's vision tower is not loaded.

    BackboneError if a tensor is missing, which would otherwise be drawn at random.
    """
    if not sys.stderr.isatty():
        transformers.logging.disable_progress_bar()
    loaded: Any = AutoModelForCausalLM.from_pretrained(
        record.model,
        dtype=getattr(torch, dtype),
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
    use_blocked_delta_rule(model)
    return model.to(device)
