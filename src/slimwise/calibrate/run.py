"""Stage collect-stats: what every expert does on the calibration mixture."""

import logging
import time
from pathlib import Path
from typing import Any

from tqdm import tqdm
from transformers import AutoTokenizer

from slimwise.artifacts.backbone_record import BackboneRecord, read_backbone_record
from slimwise.artifacts.checkpoint_digest import check_unchanged
from slimwise.artifacts.routing_stats import write_routing_stats
from slimwise.backbones.registry import backbone_for
from slimwise.calibrate.batches import TokenBatch, token_batches
from slimwise.calibrate.config import CalibrationConfig
from slimwise.calibrate.model import load_decoder
from slimwise.calibrate.observer import observed
from slimwise.calibrate.progress import clear_progress, load_progress, save_progress
from slimwise.calibrate.sequences import component_sequences
from slimwise.config_digest import config_digest
from slimwise.core.routing_stats import RoutingStats
from slimwise.provenance import code_digest, current_provenance
from slimwise.work_directory import work_directory

logger = logging.getLogger(__name__)

Batches = list[tuple[str, TokenBatch]]
"""Each batch behind the name of its component."""


def run(config: CalibrationConfig, *, backbone: Path, out: Path, work: Path) -> None:
    """Write the routing statistics of each component of the mixture.

    An interrupted run continues at its last resume point in work, under the same configuration,
    model and code only.
    """
    record = read_backbone_record(backbone)
    check_unchanged(record)
    tokenizer: Any = AutoTokenizer.from_pretrained(record.model, local_files_only=True)
    batches = [
        (component, batch)
        for component in config.components
        for batch in token_batches(
            component_sequences(config, component, tokenizer), config.batch_tokens
        )
    ]
    state = work / config_digest(config, record.digest, code_digest(__name__))
    with work_directory(state):
        stats = _collect(config, record, batches, state)
        write_routing_stats(out, stats, current_provenance())
        clear_progress(state)


def _collect(
    config: CalibrationConfig, record: BackboneRecord, batches: Batches, state: Path
) -> dict[str, RoutingStats]:
    shape, family = record.shape, backbone_for(record.model_type)
    nothing = {
        name: RoutingStats.zeros(shape.num_layers, shape.num_experts) for name in config.components
    }
    stats, num_done = load_progress(state) or (nothing, 0)
    model = load_decoder(record, config)
    started = time.perf_counter()
    with observed(model, family, record.gate_rule) as observer:
        bar = tqdm(batches[num_done:], initial=num_done, total=len(batches), disable=None)
        for number, (component, batch) in enumerate(bar, num_done + 1):
            stats[component] = stats[component] + observer.observe(batch)
            if number % config.save_every_batches == 0:
                save_progress(state, stats, number, current_provenance())
    _log_speed(batches[num_done:], num_done, record, time.perf_counter() - started)
    return stats


def _log_speed(batches: Batches, num_skipped: int, record: BackboneRecord, seconds: float) -> None:
    num_tokens = sum(batch.num_tokens for _, batch in batches)
    logger.info(
        "observed %d layers x %d experts on %.3f M tokens in %d batches (%d done before): "
        "%.1f s, %.0f tokens/s",
        record.shape.num_layers,
        record.shape.num_experts,
        num_tokens / 1e6,
        len(batches),
        num_skipped,
        seconds,
        num_tokens / seconds,
    )
