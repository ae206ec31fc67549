"""Stage measure-scoring: tokens/s and memory of scoring, beside the REAP observer and a plain loop.

Legend: B sequences, S positions.
"""

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from slimwise.backbones.base import Backbone
from slimwise.backbones.published import language_model, random_decoder
from slimwise.backbones.registry import backbone_for
from slimwise.calibrate.batches import TokenBatch
from slimwise.calibrate.observer import observed
from slimwise.calibrate.speed.config import ScoringSpeedConfig
from slimwise.calibrate.speed.expert_loop import looped
from slimwise.calibrate.speed.reap_observer import observed_by_reap
from slimwise.provenance import current_provenance

logger = logging.getLogger(__name__)

_TOKEN_IDS = 1000

Pass = Callable[[Tensor], None]
"""One observed forward pass of ids [B, S]."""


def run(config: ScoringSpeedConfig, *, out: Path) -> None:
    """Append one row of JSON for each implementation, as soon as it is measured."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    text = language_model(config.shape, config.num_layers)
    model = random_decoder(text, torch.bfloat16, device, config.seed)
    out.parent.mkdir(parents=True, exist_ok=True)
    for name, batch_sequences, observe in _implementations(config, model, text):
        row = _measure(config, name, batch_sequences, observe, device)
        logger.info("%s", row)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _implementations(
    config: ScoringSpeedConfig, model: Any, text: Any
) -> Iterator[tuple[str, int, Pass]]:
    family, rule = _family(text)
    with observed(model, family, rule) as observer:
        yield "slimwise", config.batch_sequences, lambda ids: _observe(observer, ids)
    with looped(model, family):
        yield "expert_loop", config.batch_sequences, lambda ids: _forward(model, ids)
    if config.reap_source is not None:
        top_k = family.shape(text.to_dict()).top_k
        with observed_by_reap(model, family, top_k, config.reap_source):
            yield "reap_observer", config.reap_batch_sequences, lambda ids: _forward(model, ids)
    yield "unobserved", config.batch_sequences, lambda ids: _forward(model, ids)


def _family(text: Any) -> tuple[Backbone, Any]:
    family = backbone_for(text.model_type)
    return family, family.gate_rule(text.to_dict())


def _observe(observer: Any, ids_BS: Tensor) -> None:
    observer.observe(TokenBatch(ids_BS, torch.ones_like(ids_BS)))


def _forward(model: Any, ids_BS: Tensor) -> None:
    with torch.inference_mode():
        model(ids_BS, use_cache=False)


def _measure(
    config: ScoringSpeedConfig,
    name: str,
    batch_sequences: int,
    observe: Pass,
    device: torch.device,
) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(config.seed)
    shape = config.num_batches + 1, batch_sequences, config.sequence_tokens
    batches = torch.randint(_TOKEN_IDS, shape, generator=generator).to(device)
    # The first pass compiles and grows the allocator.
    observe(batches[0])
    _reset_peak(device)
    started = time.perf_counter()
    for ids_BS in batches[1:]:
        observe(ids_BS)
    _wait(device)
    seconds = time.perf_counter() - started
    tokens_per_s = config.num_batches * batch_sequences * config.sequence_tokens / seconds
    return {
        "shape": str(config.shape),
        "num_layers": config.num_layers,
        "implementation": name,
        "batch_sequences": batch_sequences,
        "sequence_tokens": config.sequence_tokens,
        "tokens_per_s": tokens_per_s,
        "peak_gib": _peak_gib(device),
        "mixture_minutes": config.mixture_tokens / tokens_per_s / 60,
        **asdict(current_provenance()),
    }


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _reset_peak(device: torch.device) -> None:
    _wait(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()


def _peak_gib(device: torch.device) -> float | None:
    """Peak of allocated memory since the last reset, weights included; null on CPU."""
    return torch.cuda.max_memory_allocated() / 2**30 if device.type == "cuda" else None
