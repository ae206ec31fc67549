"""A teacher's cache that a continuation reads and never changes.

The cache that was written keeps its tensors by copying into them, which a backward pass refuses.
"""

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import Cache


class ReadOnlyCache(Cache):
    """Keys, values and recurrent states of a prefix, for any number of continuations.

    Attention sees them before the continuation's own; recurrent layers start from them.
    """

    def __init__(self, written: Cache) -> None:
        super().__init__(layers=written.layers)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        """The prefix's keys and values with these behind them."""
        layer: Any = self.layers[layer_idx]
        keys = torch.cat([layer.keys, key_states], dim=-2)
        return keys, torch.cat([layer.values, value_states], dim=-2)

    def update_conv_state(
        self, conv_states: Tensor, layer_idx: int, state_idx: int = 0, **kwargs: Any
    ) -> Tensor:
        """The prefix's last inputs of the convolution with these behind them."""
        layer: Any = self.layers[layer_idx]
        return torch.cat([layer.conv_states[state_idx], conv_states], dim=-1)

    def update_recurrent_state(
        self, recurrent_states: Tensor, layer_idx: int, *args: Any, **kwargs: Any
    ) -> Tensor:
        """The given states: nothing reads them again."""
        return recurrent_states
