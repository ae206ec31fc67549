"""Lets an engine of a gated-delta-net model on CPU survive a prompt of one token.

The convolution kernel of vLLM 0.32 wants transposed contiguous rows and judges by strides. A slice
of one row counts as contiguous whatever its stride, so vLLM does not copy it, and the kernel's
refusal ends the engine. A disaggregated prefill meets this with prompts of two tokens already.
"""

import functools
import importlib
import importlib.util
from collections.abc import Callable

from torch import Tensor

_MODULE = "vllm.model_executor.layers.mamba.ops.cpu.gdn_attention"
_FUNCTION = "_causal_conv1d_fwd_cpu"


def accept_one_token() -> None:
    """Mend the convolution of this process; harmless to repeat, or where there is none."""
    if importlib.util.find_spec(_MODULE) is None:
        return
    module = importlib.import_module(_MODULE)
    convolve = getattr(module, _FUNCTION, None)
    if convolve is not None and not hasattr(convolve, "__wrapped__"):
        setattr(module, _FUNCTION, _with_strides_of_a_row(convolve))


def _with_strides_of_a_row(convolve: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(convolve)
    def convolve_any(*, x: Tensor, **arguments: object) -> Tensor:
        num_channels, num_tokens = x.shape
        if num_tokens == 1:
            x = x.as_strided(x.shape, (1, num_channels))
        return convolve(x=x, **arguments)

    return convolve_any
