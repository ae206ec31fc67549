"""A faster gated delta rule for models whose library has only its reference for it.

Legend: B sequences, S positions, H heads, K key width, V value width.
"""

import importlib.util
import sys
from typing import Any

from torch import Tensor, nn

from slimwise.core.gated_delta_rule import DeltaInputs, gated_delta_rule

_FUNCTION = "torch_chunk_gated_delta_rule"
_NORM_EPS = 1e-6


def use_blocked_delta_rule(model: nn.Module) -> int:
    """Number of layers that now compute by core.gated_delta_rule: all of linear attention.

    Zero if flash-linear-attention is installed, whose kernels the library takes by itself. The
    library's reference indexes its blocks one by one, which costs gradients of full size for each:
    its backward pass grows with the square of the length. The change holds for every model of that
    class in this process.
    """
    library = importlib.util.find_spec("fla")
    # A folder of that name is a package too, of nothing; it has no origin.
    if library is not None and library.origin is not None:
        return 0
    layers = [module for module in model.modules() if hasattr(module, "in_proj_qkv")]
    modules = {type(layer).__module__ for layer in layers}
    for name in modules:
        if hasattr(sys.modules[name], _FUNCTION):
            setattr(sys.modules[name], _FUNCTION, _library_signature)
    return len(layers)


def _library_signature(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    g: Tensor,
    beta: Tensor,
    *,
    initial_state: Tensor | None = None,
    output_final_state: bool = False,
    use_qk_l2norm_in_kernel: bool = False,
    **_ignored: Any,
) -> tuple[Tensor, Tensor | None]:
    """The library's function: inputs and outputs [B, S, H, ...], outputs in the query's type."""
    query_BHSK, key_BHSK = query.transpose(1, 2).float(), key.transpose(1, 2).float()
    if use_qk_l2norm_in_kernel:
        query_BHSK, key_BHSK = _of_length_one(query_BHSK), _of_length_one(key_BHSK)
    inputs = DeltaInputs(
        query_BHSK * query.shape[-1] ** -0.5,
        key_BHSK,
        value.transpose(1, 2),
        g.transpose(1, 2),
        beta.transpose(1, 2),
    )
    outputs_BHSV, last_BHKV = gated_delta_rule(inputs, initial_state)
    outputs = outputs_BHSV.transpose(1, 2).to(query.dtype).contiguous()
    return outputs, last_BHKV if output_final_state else None


def _of_length_one(vectors: Tensor) -> Tensor:
    return vectors * (vectors.square().sum(dim=-1, keepdim=True) + _NORM_EPS).rsqrt()
