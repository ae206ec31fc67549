"""Tells the token buffers of every engine step, for both of vLLM's model runners.

V1 (v1/worker/gpu_model_runner.py) prepares inputs in _prepare_inputs, V2
(v1/worker/gpu/model_runner.py) in prepare_inputs. The CPU runners inherit from them.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from slimwise.errors import KeepSetError
from slimwise_vllm.request_pools import AssignedPools, PhasePools, assigned_pools
from slimwise_vllm.token_pools import StepBatch

OnStep = Callable[[StepBatch], None]
_FULL = PhasePools(0, 0)


class RequestTable:
    """Pools of the requests that a worker has in hand; those of warm-up runs have none."""

    def __init__(self, digests: Sequence[str]) -> None:
        """The digests are those of the worker's own pools."""
        self._digests = digests
        self._pools: dict[str, PhasePools] = {}

    def update(self, scheduler_output: Any) -> None:
        """Follow the scheduler: forget finished requests, then learn new and resumed ones.

        KeepSetError if a request was promised what this worker does not hold.
        """
        for request in scheduler_output.finished_req_ids:
            self._pools.pop(request, None)
        for request in scheduler_output.scheduled_new_reqs:
            assigned = assigned_pools(request.sampling_params)
            if assigned is not None:
                self._check(request.req_id, assigned)
                self._pools[request.req_id] = assigned.pools

    def pools(self, requests: Sequence[str]) -> list[PhasePools]:
        """The pools of each request; the full one for those that are not known."""
        return [self._pools.get(request, _FULL) for request in requests]

    def _check(self, request: str, assigned: AssignedPools) -> None:
        held = tuple(self._digests[pool] for pool in assigned.pools)
        if held != assigned.digests:
            raise KeepSetError(
                f"request {request} was assigned pools of digests {assigned.digests}, this worker "
                f"has {held}: their files differ between hosts, or changed while the server "
                "started. Start it again with the same files everywhere."
            )


def hook_steps(
    runner: Any,
    table: RequestTable,
    on_step: OnStep,
    on_dummy_run: Callable[[], None],
    on_end: Callable[[], None],
) -> None:
    """Call on_step before each step of real requests, on_end after it, on_dummy_run for others."""
    _before(runner, "_dummy_run", lambda *_: on_dummy_run())
    _hook_execution(runner, table, on_end)
    if hasattr(runner, "_prepare_inputs"):
        _hook_v1(runner, table, on_step)
    else:
        _hook_v2(runner, table, on_step)


def _hook_execution(runner: Any, table: RequestTable, on_end: Callable[[], None]) -> None:
    execute = runner.execute_model

    @functools.wraps(execute)
    def followed(scheduler_output: Any, *args: Any, **kwargs: Any) -> Any:
        table.update(scheduler_output)
        result = execute(scheduler_output, *args, **kwargs)
        on_end()
        return result

    runner.execute_model = followed


def _hook_v1(runner: Any, table: RequestTable, on_step: OnStep) -> None:
    def announce(_scheduler_output: Any, num_scheduled_R: Any, *_: Any) -> None:
        batch = runner.input_batch
        rows = slice(batch.num_reqs)
        on_step(
            StepBatch(
                table.pools(batch.req_ids),
                batch.num_prompt_tokens[rows],
                batch.num_computed_tokens_cpu[rows],
                num_scheduled_R[rows],
            )
        )

    _before(runner, "_prepare_inputs", announce)


def _hook_v2(runner: Any, table: RequestTable, on_step: OnStep) -> None:
    prepare = runner.prepare_inputs

    @functools.wraps(prepare)
    def announced(*args: Any, **kwargs: Any) -> Any:
        batch = prepare(*args, **kwargs)
        states, rows = runner.req_states, batch.idx_mapping_np
        on_step(
            StepBatch(
                table.pools(batch.req_ids),
                # Not prefill_len: after preemption it counts output tokens too.
                states.prompt_len.np[rows],
                states.num_computed_tokens_np[rows],
                batch.num_scheduled_tokens,
            )
        )
        return batch

    runner.prepare_inputs = announced


def _before(holder: Any, name: str, call: Callable[..., None]) -> None:
    original = getattr(holder, name)

    @functools.wraps(original)
    def called_before(*args: Any, **kwargs: Any) -> Any:
        call(*args)
        return original(*args, **kwargs)

    setattr(holder, name, called_before)
