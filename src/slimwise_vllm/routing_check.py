"""The debug check: no token may reach an expert outside its pool.

Legend: T tokens, K top-k, P pools, E experts.
"""

import torch
from torch import Tensor


class RoutingViolationError(RuntimeError):
    """A token reached a pruned expert: the server must not go on answering."""


class RoutingCheck:
    """Counts choices outside a token's pool on the device; reading the count synchronises."""

    def __init__(self, num_layers: int, device: torch.device) -> None:
        self._violations_L = torch.zeros(num_layers, dtype=torch.int32, device=device)

    def observe(self, ids_TK: Tensor, pruned_PE: Tensor, pool_T: Tensor, layer: int) -> None:
        """Count choices of one layer that the rows' pools lack; kernels skip rows with id -1."""
        rows_T1 = pool_T[: len(ids_TK), None].long()
        outside_TK = pruned_PE[rows_T1, ids_TK.clamp(min=0).long()] & (ids_TK >= 0)
        self._violations_L[layer] += outside_TK.sum(dtype=torch.int32)

    def raise_if_violated(self) -> None:
        """RoutingViolationError naming the first layer where a choice was outside its pool."""
        counts = self._violations_L.tolist()
        if any(counts):
            layer = next(index for index, count in enumerate(counts) if count)
            raise RoutingViolationError(
                f"{counts[layer]} choices in MoE layer {layer} reached experts outside the pool of "
                "their token. Answers since the last step are wrong; the server stops."
            )
