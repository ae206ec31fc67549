"""What pruning must know of a mixture-of-experts model: its counts, and how gates are made."""

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class MoEShape:
    """Counts and widths shared by all MoE layers of a model (widths in channels)."""

    num_layers: int
    num_experts: int
    top_k: int
    hidden_size: int
    expert_width: int
    shared_expert_width: int


class GateActivation(StrEnum):
    """What turns router logits into gates."""

    SOFTMAX = "softmax"
    SIGMOID = "sigmoid"


@dataclass(frozen=True)
class GateRule:
    """How router logits become the gates that multiply expert outputs."""

    activation: GateActivation
    renormalised: bool
    per_expert_scale: bool = False
