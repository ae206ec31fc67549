"""Requests that stay in an engine and decode, step by step under the caller's clock."""

import time
from collections.abc import Mapping
from typing import Any

import torch

from slimwise.errors import EngineError

_PATIENCE_STEPS = 64
_FIRST_TOKEN = 10
"""Prompts avoid the lowest ids, which are special tokens in most vocabularies."""


class LiveBatch:
    """Requests of random prompts in one in-process engine; end() before the next batch."""

    def __init__(self, llm: Any, vocabulary: int, seed: int) -> None:
        self._llm = llm
        self._engine = llm.llm_engine
        self._scheduler = self._engine.engine_core.engine_core.scheduler
        self._vocabulary = vocabulary
        self._generator = torch.Generator().manual_seed(seed)
        self._requests: list[str] = []

    def begin(
        self, batch: int, prompt_tokens: int, max_tokens: int, extra_args: Mapping[str, Any]
    ) -> None:
        """Add the requests and run until each has its first token; EngineError if not all fit."""
        self._add(batch, prompt_tokens, max_tokens, extra_args)
        # Once the first request has ended, the batch cannot become whole.
        for _ in range(max_tokens + _PATIENCE_STEPS):
            if self._all_decode(batch):
                return
            self._engine.step()
        self.expect(batch)

    def expect(self, batch: int) -> None:
        """EngineError unless as many decode at once, and none of them waits or has ended."""
        if not self._all_decode(batch):
            num = len(self._scheduler.running)
            raise EngineError(
                f"{batch} requests do not decode at once, {num} of them run. Measure a smaller "
                "batch or a shorter context."
            )

    def prefill(self, batch: int, prompt_tokens: int, extra_args: Mapping[str, Any]) -> float:
        """Seconds from the first step to the last answer of requests for a single token."""
        self._add(batch, prompt_tokens, 1, extra_args)
        synchronise()
        started = time.perf_counter()
        while self._engine.has_unfinished_requests():
            self._engine.step()
        synchronise()
        self._requests.clear()
        return time.perf_counter() - started

    def step(self, num_steps: int) -> float:
        """Seconds that the steps took.

        With asynchronous scheduling a call launches one step and ends with the one before, so
        the seconds of a steady run are those of its steps, shifted by one.
        """
        started = time.perf_counter()
        for _ in range(num_steps):
            self._engine.step()
        return time.perf_counter() - started

    def mean_context_tokens(self) -> float:
        """Prompt and output so far, mean over running requests."""
        running = self._scheduler.running
        return sum(request.num_tokens for request in running) / max(len(running), 1)

    def end(self) -> None:
        """Abort the requests and run the engine empty."""
        self._engine.abort_request(self._requests, internal=True)
        self._requests.clear()
        while self._engine.has_unfinished_requests() or self._scheduler.has_requests():
            self._engine.step()

    def _add(
        self, batch: int, prompt_tokens: int, max_tokens: int, extra_args: Mapping[str, Any]
    ) -> None:
        from vllm import SamplingParams

        parameters = SamplingParams(
            temperature=0.0,
            max_tokens=max_tokens,
            ignore_eos=True,
            detokenize=False,
            extra_args=dict(extra_args) or None,
        )
        shape = batch, prompt_tokens
        prompts = torch.randint(_FIRST_TOKEN, self._vocabulary, shape, generator=self._generator)
        inputs = [{"prompt_token_ids": prompt} for prompt in prompts.tolist()]
        self._requests += self._llm.enqueue(inputs, parameters, use_tqdm=False)

    def _all_decode(self, batch: int) -> bool:
        running = self._scheduler.running
        return len(running) == batch and all(request.num_output_tokens for request in running)


def synchronise() -> None:
    """Wait until the GPU has done all that was asked of it."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
