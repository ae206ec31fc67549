"""Refuses to let two servers hand KV cache to each other that would read it differently."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slimwise.backbones.registry import inspect_checkpoint
from slimwise.engine.config import ServingConfig
from slimwise.engine.metrics import read_metrics
from slimwise.errors import CheckpointError, EngineError

_TOKENIZER_FILES = ("tokenizer.json", "chat_template.jinja")
_CACHE_INFO = "vllm:cache_config_info"
_CACHE_LABELS = (
    "block_size",
    "cache_dtype",
    "mamba_block_size",
    "mamba_cache_dtype",
    "mamba_ssm_cache_dtype",
    "mamba_cache_mode",
    "sliding_window",
)


def refuse_other_geometry(prefill: Path, decode: Path, config: ServingConfig) -> None:
    """CheckpointError names the first field in which the checkpoints' cached states differ.

    Reads configurations and tokenizers, no weights.
    """
    ours, theirs = (_facts(folder, config) for folder in (prefill, decode))
    for field in (*ours, *(key for key in theirs if key not in ours)):
        if ours.get(field) != theirs.get(field):
            raise CheckpointError(
                f"{field} is {ours.get(field)!r} in {prefill} and {theirs.get(field)!r} in "
                f"{decode}: the decode server cannot use the cache of the prefill server. Serve a "
                "decoder that was exported from the model that prefills."
            )


def refuse_other_cache(prefill_urls: Sequence[str], decode_urls: Sequence[str]) -> None:
    """EngineError names the first setting in which the running servers' caches differ.

    So does a decode server that keeps prompts of its own.
    """
    first, *others = (*prefill_urls, *decode_urls)
    expected = _cache(first)
    for url in others:
        found = _cache(url)
        for label in _CACHE_LABELS:
            if found.get(label) != expected.get(label):
                raise EngineError(
                    f"{label} is {expected.get(label)} on the server {first} and "
                    f"{found.get(label)} on {url}. Start both with the same cache settings."
                )
    for url in decode_urls:
        if _cache(url).get("enable_prefix_caching") != "False":
            raise EngineError(
                f"the decode server {url} keeps prompts of its own, which the decoder wrote. Start "
                "it with --no-enable-prefix-caching."
            )


def _cache(base_url: str) -> dict[str, str]:
    return read_metrics(base_url).labels(_CACHE_INFO)


def _facts(folder: Path, config: ServingConfig) -> Mapping[str, Any]:
    checkpoint = inspect_checkpoint(folder)
    backbone, raw = checkpoint.backbone, checkpoint.config
    return {
        "the family": backbone.model_types[0],
        **backbone.kv_geometry(raw),
        "dtype": backbone.dtype(raw) if config.dtype == "auto" else config.dtype,
        **{name: _digest(folder / name) for name in _TOKENIZER_FILES},
    }


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12] if path.is_file() else None
