"""The record of a backbone that is nowhere."""

from pathlib import Path

from slimwise.artifacts.backbone_record import BackboneRecord
from slimwise.core.moe import GateActivation, GateRule, MoEShape

RECORD = BackboneRecord(
    "mini",
    Path("/models/mini"),
    "qwen3_5_moe_text",
    "Qwen3_5MoeForCausalLM",
    MoEShape(8, 64, 4, 192, 32, 64),
    GateRule(GateActivation.SOFTMAX, renormalised=True),
    "bfloat16",
    "digest",
)
