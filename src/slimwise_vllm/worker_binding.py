"""Binds the pools to a worker whose model has just been loaded."""

import logging
from pathlib import Path
from typing import Any

import torch

from slimwise.errors import BackboneError, ConfigError
from slimwise_vllm.coverage import Coverage
from slimwise_vllm.moe_layers import MoELayer, planned_layers
from slimwise_vllm.operators import define_operators
from slimwise_vllm.pools import Pools, load_pools, pruned_experts
from slimwise_vllm.refusals import refuse_router, refuse_unobservable
from slimwise_vllm.router_hook import mask_layer, observe_choices
from slimwise_vllm.routing_check import RoutingCheck
from slimwise_vllm.settings import PluginSettings
from slimwise_vllm.step_hook import RequestTable, hook_steps
from slimwise_vllm.token_pools import StepBatch, TokenPools
from slimwise_vllm.trained_weights import TrainedModel, install_trained

# vLLM shows the loggers below its own name only.
_log = logging.getLogger(f"vllm.{__name__}")


class WorkerPools:
    """The pools of one worker: buffers, hooks and counters that live as long as its model."""

    def __init__(self, worker: Any, settings: PluginSettings) -> None:
        runner, config = worker.model_runner, worker.vllm_config
        self._settings = settings
        pools, model = load_pools(settings), runner.get_model()
        self._layers = planned_layers(model, pools)
        self._max_num_seqs = config.scheduler_config.max_num_seqs
        num_rows = _largest_step(config)
        self._token_pools = TokenPools(num_rows, pools.num_kept, runner.device)
        self._reached = [False] * len(self._layers)
        self._num_steps = 0
        self._check = (
            RoutingCheck(len(self._layers), runner.device) if settings.check_routing else None
        )
        self.coverage = (
            Coverage(settings, (pools.num_layers, pools.num_experts, pools.top_k), runner.device)
            if settings.coverage_file and worker.rank == 0
            else None
        )
        loaded = TrainedModel(model, self._layers, Path(config.model_config.model))
        self._hook_layers(loaded, pools, runner.device)
        table = RequestTable(pools.digests)
        hook_steps(runner, table, self._on_step, self._token_pools.clear, self._on_end)
        for pool in pools.pruned:
            _log.info(
                "rank %d: pool %s of %s, trained %s, digest %s, %d MoE layers",
                *(worker.rank, pool.name, pool.path, pool.trained, pool.digest, pools.num_layers),
            )

    def _hook_layers(self, loaded: TrainedModel, pools: Pools, device: torch.device) -> None:
        pruned_LPE, pool_T = pruned_experts(pools).to(device), self._token_pools.pool_T
        block_P = install_trained(loaded, pools.pruned, pool_T)
        for layer in self._layers:
            refuse_router(layer, device)
            pruned_PE = pruned_LPE[layer.index]
            if self._check or self.coverage:
                refuse_unobservable(layer)
                observe_choices(layer, self._observer(layer, pruned_PE))
            mask_layer(layer, pruned_PE, pool_T, self._reached, block_P)

    def _observer(self, layer: MoELayer, pruned_PE: torch.Tensor) -> Any:
        def observe(ids_TK: torch.Tensor) -> None:
            if self.coverage is not None:
                torch.ops.slimwise.count_experts(
                    ids_TK, self._token_pools.phase_T, self.coverage.counts_HLE, layer.index
                )
            if self._check is not None:
                self._check.observe(ids_TK, pruned_PE, self._token_pools.pool_T, layer.index)

        return observe

    def _on_step(self, batch: StepBatch) -> None:
        if self._num_steps == 1:
            self._refuse_unreached()
        self._num_steps += 1
        lengths = self._token_pools.fill(batch, self._settings.first_decode_offset)
        if self.coverage is not None:
            self.coverage.begin_step(lengths.tolist(), self._max_num_seqs)

    def _on_end(self) -> None:
        if self._check is not None:
            self._check.raise_if_violated()

    def _refuse_unreached(self) -> None:
        for layer, reached in zip(self._layers, self._reached, strict=True):
            if not reached:
                raise BackboneError(
                    f"{layer.name} was never asked to choose experts in the first step, so its "
                    "tokens cannot be kept on a pool. This model can be served full only."
                )


def _largest_step(config: Any) -> int:
    """Rows of the largest step: scheduled tokens, or those of a padded CUDA graph."""
    captured = config.compilation_config.cudagraph_capture_sizes or []
    return max(config.scheduler_config.max_num_batched_tokens, *captured, 1)


def bind_worker(worker: Any, settings: PluginSettings) -> None:
    """Bind the pools as worker.slimwise, and give collective_rpc the method slimwise_coverage."""
    define_operators()
    bound = worker.slimwise = WorkerPools(worker, settings)

    def coverage_report() -> dict[str, Any] | None:
        return bound.coverage.report() if bound.coverage else None

    worker.slimwise_coverage = coverage_report
    if settings.has_trained:
        worker.reload_weights = _refuse_reload


def _refuse_reload(*_: Any, **__: Any) -> None:
    # vLLM would notice with half of the weights loaded, and go on answering with those.
    raise ConfigError(
        "reload_weights cannot load beside the trained tensors of pools. Restart the server."
    )
