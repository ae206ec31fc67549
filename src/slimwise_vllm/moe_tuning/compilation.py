"""Compiles settings of the kernel in many processes, into Triton's cache on disk.

A process compiles one setting in two seconds, and several hundred are timed.
"""

import dataclasses
import logging
import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor

from slimwise_vllm.moe_tuning.candidates import KernelConfig
from slimwise_vllm.moe_tuning.layer import ExpertLayer, ExpertShape, timed_steps

_log = logging.getLogger(__name__)
_FEW_EXPERTS = 64
_BATCHES = (1, 16)
"""A single token takes another path through the kernel, and any other number the same."""


def compile_beforehand(
    shape: ExpertShape, configs: Sequence[KernelConfig], num_processes: int
) -> None:
    """Compile the settings for the widths of the shape, as far as that goes.

    What fails here is compiled, or fails again, when it is timed.
    """
    num_processes = min(num_processes, os.cpu_count() or 1)
    parts = [configs[first::num_processes] for first in range(num_processes)]
    spawn = multiprocessing.get_context("spawn")
    small = dataclasses.replace(shape, num_experts=min(shape.num_experts, _FEW_EXPERTS))
    with ProcessPoolExecutor(num_processes, mp_context=spawn) as pool:
        compiled = [pool.submit(_compile, small, part) for part in parts]
    for failure in filter(None, (part.exception() for part in compiled)):
        _log.warning("a compiling process failed: %s", failure)


def _compile(shape: ExpertShape, configs: Sequence[KernelConfig]) -> None:
    layer = ExpertLayer(shape, skew_strength=0.0, seed=0)
    for batch in _BATCHES:
        steps = layer.steps(batch, 1)
        for config in configs:
            timed_steps(steps, config)
