"""The experts that a pruned decoder may use, layer by layer (K'_l of the paper)."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from slimwise.errors import KeepSetError


@dataclass(frozen=True)
class KeepSet:
    """Kept expert ids per MoE layer: sorted, unique, in range, at least top_k in each layer.

    Raises KeepSetError naming the layer and the id. Layers may keep different counts.
    """

    kept: tuple[tuple[int, ...], ...]
    num_experts: int
    top_k: int

    def __post_init__(self) -> None:
        if not self.kept:
            raise KeepSetError("keep set has no layers: at least one MoE layer must be named.")
        for layer, ids in enumerate(self.kept):
            self._check_layer(layer, ids)

    def _check_layer(self, layer: int, ids: Sequence[int]) -> None:
        for expert in ids:
            if not 0 <= expert < self.num_experts:
                raise KeepSetError(
                    f"keep set, layer {layer}: expert {expert} is outside "
                    f"0..{self.num_experts - 1}."
                )
        for left, right in pairwise(ids):
            if left == right:
                raise KeepSetError(f"keep set, layer {layer}: expert {left} is listed twice.")
            if left > right:
                raise KeepSetError(
                    f"keep set, layer {layer}: expert {right} follows {left}; ids must ascend."
                )
        if len(ids) < self.top_k:
            raise KeepSetError(
                f"keep set, layer {layer}: {len(ids)} kept experts are fewer than "
                f"top_k={self.top_k}; keep {self.top_k}..{self.num_experts}."
            )

    @property
    def num_layers(self) -> int:
        """MoE layers (L)."""
        return len(self.kept)

    @property
    def num_kept_per_layer(self) -> tuple[int, ...]:
        """Kept experts (m') of each layer."""
        return tuple(len(ids) for ids in self.kept)

    @property
    def is_uniform(self) -> bool:
        """True if all layers keep the same number of experts, as an exported checkpoint needs."""
        return len(set(self.num_kept_per_layer)) == 1

    @property
    def digest(self) -> str:
        """Hex SHA-256 of the content: equal for equal keep sets, whatever chose them."""
        content = json.dumps([self.num_experts, self.top_k, self.kept])
        return hashlib.sha256(content.encode()).hexdigest()
