"""One layer's routed experts on a GPU, with random weights, and how long they take.

Each timing replays a CUDA graph of several calls with routed experts of their own, so that no call
finds the weights of the one before it in the cache.

Legend: T tokens, E experts, K top-k, D hidden width, F expert width.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from slimwise.core.skew import expert_scales
from slimwise_vllm.moe_tuning.candidates import KernelConfig

_log = logging.getLogger(__name__)
_WARM_REPLAYS = 2
_WEIGHT_STD = 0.02


@dataclass(frozen=True)
class ExpertShape:
    """num_experts are those that the weights hold, num_experts_full those of the full model."""

    num_experts: int
    num_experts_full: int
    top_k: int
    hidden_width: int
    expert_width: int


class ExpertLayer:
    """The experts of a shape; skew_strength 0 routes uniformly."""

    def __init__(self, shape: ExpertShape, skew_strength: float, seed: int) -> None:
        self.shape = shape
        self._generator = torch.Generator("cuda").manual_seed(seed)
        self._scales_E = expert_scales(shape.num_experts_full, shape.num_experts, skew_strength).to(
            "cuda", torch.float32
        )
        width, hidden = shape.expert_width, shape.hidden_width
        self._up_EFD = self._drawn(shape.num_experts, 2 * width, hidden)
        self._down_EDF = self._drawn(shape.num_experts, hidden, width)

    def steps(self, batch: int, num_routings: int) -> list["ExpertStep"]:
        """Steps of batch tokens, each routed anew."""
        hidden_TD = self._drawn(batch, self.shape.hidden_width)
        return [
            ExpertStep(hidden_TD, self._up_EFD, self._down_EDF, *self._routed(batch))
            for _ in range(num_routings)
        ]

    def _routed(self, batch: int) -> tuple[Tensor, Tensor]:
        size = batch, self.shape.num_experts
        logits_TE = torch.randn(size, device="cuda", generator=self._generator) * self._scales_E
        gates_TK, ids_TK = logits_TE.softmax(-1).topk(self.shape.top_k)
        return gates_TK / gates_TK.sum(-1, keepdim=True), ids_TK.to(torch.int32)

    def _drawn(self, *size: int) -> Tensor:
        empty = torch.empty(size, device="cuda", dtype=torch.bfloat16)
        return empty.normal_(std=_WEIGHT_STD, generator=self._generator)


@dataclass(frozen=True)
class ExpertStep:
    """The routed experts of one step of tokens."""

    hidden_TD: Tensor
    up_EFD: Tensor
    down_EDF: Tensor
    gates_TK: Tensor
    ids_TK: Tensor

    @property
    def num_distinct(self) -> int:
        """Experts that the step reads."""
        return self.ids_TK.unique().numel()

    def run(self) -> Tensor:
        """The experts' output by vLLM's kernel, [T, D]."""
        from vllm.model_executor.layers.fused_moe import fused_experts

        return fused_experts(self.hidden_TD, self.up_EFD, self.down_EDF, self.gates_TK, self.ids_TK)


class TimedSteps:
    """The steps under one setting of the kernel, captured; raises what the launch raises."""

    def __init__(self, steps: Sequence[ExpertStep], config: KernelConfig) -> None:
        from vllm.model_executor.layers.fused_moe import override_config

        self.config = config
        self._num_steps = len(steps)
        self._graph = torch.cuda.CUDAGraph()
        with override_config(config):
            # Compiled and loaded before the capture, which allows neither.
            steps[0].run()
            torch.cuda.synchronize()
            with torch.cuda.graph(self._graph):
                for step in steps:
                    step.run()
        for _ in range(_WARM_REPLAYS):
            self._graph.replay()

    def microseconds(self) -> float:
        """Mean of a step in one replay."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self._graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3 / self._num_steps


def timed_steps(steps: Sequence[ExpertStep], config: KernelConfig) -> TimedSteps | None:
    """The steps captured under the setting; None if it does not compile or fit this device."""
    from vllm.triton_utils import triton

    try:
        return TimedSteps(steps, config)
    except (triton.runtime.errors.TritonError, RuntimeError) as failure:
        _log.info("%s: %s", config, failure)
        return None
