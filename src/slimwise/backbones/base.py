"""What the pipeline must know of a model family, and nothing that it need not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from slimwise.core.moe import GateRule, MoEShape

if TYPE_CHECKING:
    from torch import Tensor, nn

Config = Mapping[str, Any]
"""A checkpoint's config.json."""

Shapes = Mapping[str, tuple[int, ...]]
"""Shape by part: what follows the name of the MoE layer, or of one expert, in a tensor's name."""


@dataclass(frozen=True)
class Copied:
    """A tensor that pruning leaves as it is."""


@dataclass(frozen=True)
class Dropped:
    """A tensor that a pruned checkpoint does not have."""


@dataclass(frozen=True)
class ExpertStack:
    """A tensor with one slice per expert of the decoder layer, along dim; the router's too."""

    layer: int
    part: str
    dim: int = 0


@dataclass(frozen=True)
class SingleExpert:
    """A tensor of one expert, whose number stands between prefix and suffix of the name."""

    layer: int
    part: str
    expert: int
    prefix: str
    suffix: str

    def renumbered(self, expert: int) -> str:
        """The tensor's name once the expert has another number."""
        return f"{self.prefix}{expert}{self.suffix}"


TensorRole = Copied | Dropped | ExpertStack | SingleExpert


@dataclass(frozen=True)
class ExpertLayout:
    """Tensors that each MoE layer must have: those of all experts, and those of every expert."""

    stacked: Shapes
    single: Shapes = field(default_factory=dict)


@dataclass(frozen=True)
class MoEModules:
    """The modules of one MoE layer in a loaded model; router is the one that makes the logits."""

    router: nn.Module
    experts: nn.Module


@dataclass(frozen=True)
class ChatParsers:
    """vLLM's names of what reads a family's turns: thought apart from answer, and tool calls."""

    reasoning: str
    tool_calls: str


class Backbone(Protocol):
    """A family of models, known by the model_type of their config.json.

    Layers are numbered as in tensor names; keep sets number the MoE layers only, in that order.
    Methods that read a configuration raise BackboneError naming a key that is missing.
    """

    @property
    def model_types(self) -> tuple[str, ...]:
        """The model_type values of the family."""
        ...

    @property
    def refuses_float16(self) -> bool:
        """True if activations of the family overflow in float16."""
        ...

    @property
    def is_distillable(self) -> bool:
        """True if the family has a shared expert that distillation can train another beside."""
        ...

    @property
    def thought_end(self) -> str:
        """The text that ends a thought of the family's models that think."""
        ...

    def shape(self, config: Config) -> MoEShape:
        """Counts and widths that the configuration states."""
        ...

    def gate_rule(self, config: Config) -> GateRule:
        """How the family makes gates."""
        ...

    def dtype(self, config: Config) -> str:
        """Type of the weights as torch spells it, "bfloat16"."""
        ...

    def kv_geometry(self, config: Config) -> Mapping[str, Any]:
        """What decides layout and meaning of KV cache and recurrent state, by name."""
        ...

    def moe_layers(self, config: Config) -> tuple[int, ...]:
        """Numbers of the layers that have experts, ascending."""
        ...

    def tensor_role(self, name: str) -> TensorRole:
        """What pruning does with the tensor of that name."""
        ...

    def layouts(self, shape: MoEShape) -> tuple[ExpertLayout, ...]:
        """The ways in which a checkpoint may store a layer's experts."""
        ...

    def pruned_config(self, config: Config, num_kept: int) -> dict[str, Any]:
        """The configuration of a checkpoint without the dropped experts and tensors."""
        ...

    def moe_modules(self, model: nn.Module) -> tuple[MoEModules, ...]:
        """The MoE layers of a loaded transformers model without its LM head."""
        ...

    def router_logits(self, router_output: Any) -> Tensor:
        """The logits, [T, E], in what the router module returned."""
        ...

    def chat_parsers(self, template: str) -> ChatParsers | None:
        """What reads the turns of a model with that chat template; None if its text must do."""
        ...
