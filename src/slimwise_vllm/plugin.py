"""Entry point of vLLM's general plugins, called in every process that vLLM starts.

It wraps functions that run once an engine or once a request. Hot paths are hooked on the objects
of a loaded model, and only if the additional configuration names pools.
"""

import functools
import importlib
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

from slimwise.core.skew import SKEWED_WEIGHTS
from slimwise.errors import ConfigError
from slimwise_vllm.one_transfer import (
    RENDERERS,
    refuse_shared_transfer,
    refusing_shared_transfers,
)
from slimwise_vllm.request_pools import assigned_pools
from slimwise_vllm.settings import PluginSettings, read_settings

_log = logging.getLogger(f"vllm.{__name__}")
_ORIGINAL = "slimwise_original"
_BEAM_SEARCHES = (
    ("vllm.entrypoints.generate.beam_search.online", "BeamSearchOnlineMixin"),
    ("vllm.entrypoints.generate.beam_search.offline", "BeamSearchOfflineMixin"),
)
CHOOSER = "slimwise_chooser"
"""Attribute of vLLM's input processor that holds the server's PoolChooser."""


def register() -> None:
    """Make vLLM read the key "slimwise" of its additional configuration; harmless to repeat."""
    try:
        from vllm.v1.engine.core import EngineCore
        from vllm.v1.engine.input_processor import InputProcessor
        from vllm.v1.worker.worker_base import WorkerWrapperBase

        from slimwise_vllm.prefix_cache import HASH_KEYS, HASHING_MODULES, with_pool_salt

        _wrap(InputProcessor, "__init__", _with_chooser)
        _wrap(InputProcessor, "process_inputs", _with_assigned_pools)
        _wrap(EngineCore, "preprocess_add_request", _without_strangers)
        _wrap(WorkerWrapperBase, "init_device", _with_bound_worker)
        for module in HASHING_MODULES:
            _wrap(importlib.import_module(module), HASH_KEYS, with_pool_salt)
    except Exception:
        _log.exception("the slimwise plugin could not be registered with this vLLM")
        raise


def _wrap(holder: type | ModuleType, name: str, wrapper: Callable[[Any], Any]) -> None:
    original = getattr(holder, name)
    if not hasattr(original, _ORIGINAL):
        wrapped = functools.wraps(original)(wrapper(original))
        setattr(wrapped, _ORIGINAL, original)
        setattr(holder, name, wrapped)


def _with_chooser(initialise: Callable[..., None]) -> Callable[..., None]:
    """Refuse what cannot be served where requests enter, before an engine starts."""

    def initialise_with_chooser(self: Any, vllm_config: Any, *args: Any, **kwargs: Any) -> None:
        settings = read_settings(vllm_config.additional_config)
        if settings is not None:
            setattr(self, CHOOSER, _checked_chooser(vllm_config, settings))
            for module, name in _BEAM_SEARCHES:
                _wrap(getattr(importlib.import_module(module), name), "beam_search", _without_beams)
        if vllm_config.kv_transfer_config is not None:
            _refuse_shared_transfers()
        initialise(self, vllm_config, *args, **kwargs)

    return initialise_with_chooser


def _refuse_shared_transfers() -> None:
    for module, holder, name in RENDERERS:
        _wrap(getattr(importlib.import_module(module), holder), name, refusing_shared_transfers)


def _checked_chooser(vllm_config: Any, settings: PluginSettings) -> Any:
    import vllm

    from slimwise_vllm.pools import load_pools
    from slimwise_vllm.refusals import refuse_engine, refuse_other_model, refuse_version
    from slimwise_vllm.request_pools import PoolChooser

    refuse_version(vllm.__version__, settings)
    refuse_engine(vllm_config, settings)
    pools = load_pools(settings)
    refuse_other_model(pools, vllm_config, settings)
    return PoolChooser(pools, settings)


def _with_assigned_pools(process: Callable[..., Any]) -> Callable[..., Any]:
    """Record each request's pools in it, or refuse the request with a client error."""

    def process_with_pools(
        self: Any, request_id: str, prompt: Any, params: Any, *args: Any, **kwargs: Any
    ) -> Any:
        if self.vllm_config.kv_transfer_config is not None:
            refuse_shared_transfer(params)
        chooser = getattr(self, CHOOSER, None)
        if chooser is None:
            return process(self, request_id, prompt, params, *args, **kwargs)
        from vllm.exceptions import VLLMValidationError

        if kwargs.get("resumable"):
            raise VLLMValidationError(
                "expert pools do not support resumable requests: their prompt grows by answers."
            )
        try:
            extra_args = chooser.assign(params.extra_args)
        except ConfigError as failure:
            raise VLLMValidationError(str(failure)) from failure
        request = process(self, request_id, prompt, params, *args, **kwargs)
        request.sampling_params.extra_args = extra_args
        return request

    return process_with_pools


def _without_strangers(preprocess: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a request that no chooser has seen, before it would be served by the full pool."""

    def preprocess_assigned(self: Any, request: Any) -> Any:
        preprocessed = preprocess(self, request)
        is_stranger = assigned_pools(request.sampling_params) is None
        # Read for strangers only: it takes longer than all else that is done for a request here.
        if is_stranger and read_settings(self.vllm_config.additional_config) is not None:
            raise ConfigError(
                f"request {request.request_id} has no pools: it did not pass vLLM's input "
                "processor, where they are assigned. Give the engine a prompt and its parameters."
            )
        return preprocessed

    return preprocess_assigned


def _without_beams(search: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse beam search where there are pools: it asks again and again, answers as prompts."""

    def search_without_pools(self: Any, *args: Any, **kwargs: Any) -> Any:
        engine = self.engine_client if hasattr(self, "engine_client") else self.llm_engine
        if getattr(engine.input_processor, CHOOSER, None) is None:
            return search(self, *args, **kwargs)
        from vllm.exceptions import VLLMValidationError

        raise VLLMValidationError(
            "expert pools do not support beam search: vLLM asks for each token with the answer so "
            "far as the prompt, which would be prefill. Sample with n instead."
        )

    return search_without_pools


def _with_bound_worker(initialise: Callable[..., None]) -> Callable[..., None]:
    """Bind the pools as soon as the worker has loaded its model, before any run of it."""

    def initialise_and_bind(self: Any, *args: Any, **kwargs: Any) -> None:
        from vllm.platforms import current_platform

        from slimwise_vllm.refusals import refuse_frontend

        settings = read_settings(self.vllm_config.additional_config)
        if settings is not None:
            refuse_frontend()
        if current_platform.is_cpu():
            _prepare_cpu()
        initialise(self, *args, **kwargs)
        if self.vllm_config.load_config.load_format == SKEWED_WEIGHTS:
            _offer_skewed_weights()
        if settings is None:
            return
        worker = self.worker
        load_model = worker.load_model

        @functools.wraps(load_model)
        def load_and_bind(*load_args: Any, **load_kwargs: Any) -> None:
            from slimwise_vllm.worker_binding import bind_worker

            load_model(*load_args, **load_kwargs)
            bind_worker(worker, settings)

        worker.load_model = load_and_bind

    return initialise_and_bind


def _offer_skewed_weights() -> None:
    from vllm.model_executor.model_loader import register_model_loader

    from slimwise_vllm.skewed_weights import SkewedWeights

    register_model_loader(SKEWED_WEIGHTS)(SkewedWeights)


def _prepare_cpu() -> None:
    from slimwise_vllm.nixl_progress import let_progress_thread_sleep
    from slimwise_vllm.one_token_conv import accept_one_token

    accept_one_token()
    let_progress_thread_sleep()
