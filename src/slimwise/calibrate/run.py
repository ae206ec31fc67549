"""Stage collect-stats: what every expert does on the calibration mixture."""

import logging
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path

import torch

from slimwise.artifacts.backbone_record import BackboneRecord, read_backbone_record
from slimwise.artifacts.checkpoint_digest import check_unchanged
from slimwise.artifacts.routing_stats import write_routing_stats
from slimwise.backbones.loading import language_decoder, load_causal_model, load_tokenizer
from slimwise.backbones.registry import backbone_for
from slimwise.calibrate.batch_limit import BatchLimit
from slimwise.calibrate.collect import Meter, collect
from slimwise.calibrate.config import CalibrationConfig
from slimwise.calibrate.observer import observed
from slimwise.calibrate.progress import clear_progress
from slimwise.calibrate.rows import MixtureRows, mixture_rows
from slimwise.config_digest import config_digest
from slimwise.core.routing_stats import RoutingStats
from slimwise.processes import Processes, joined_processes, local_devices
from slimwise.provenance import code_digest, current_provenance
from slimwise.work_directory import work_directory

logger = logging.getLogger(__name__)


def run(config: CalibrationConfig, *, backbone: Path, out: Path, work: Path) -> None:
    """Write the routing statistics of each component of the mixture.

    Started by torchrun, each process observes a share with a model of its own. An interrupted run
    continues at its last resume point in work, under the same configuration, model, tokens, code
    and number of processes only.
    """
    record = read_backbone_record(backbone)
    check_unchanged(record)
    tokenizer = load_tokenizer(record.model)
    rows = mixture_rows(config, tokenizer)
    identity = config_digest(config, record.digest, rows.digest, code_digest(__name__))
    # Sums are exchanged on the CPU, wherever they were computed.
    with joined_processes(torch.device("cpu")) as processes:
        state = work / identity / f"process_{processes.rank + 1}_of_{processes.count}"
        with work_directory(state):
            stats = merged(_collect(config, record, rows, processes, state), processes)
            if processes.is_first:
                write_routing_stats(out, stats, current_provenance())
            processes.wait()
            clear_progress(state)


def _collect(
    config: CalibrationConfig,
    record: BackboneRecord,
    rows: MixtureRows,
    processes: Processes,
    state: Path,
) -> dict[str, RoutingStats]:
    shape, family = record.shape, backbone_for(record.model_type)
    nothing = {
        name: RoutingStats.zeros(shape.num_layers, shape.num_experts) for name in config.components
    }
    devices = local_devices(config.device, config.gpus_per_model)
    decoder = language_decoder(load_causal_model(record.model, config.dtype, devices))
    if processes.is_first:
        logger.info(
            "observing %d layers x %d experts in %d processes, each on %d x %s",
            shape.num_layers,
            shape.num_experts,
            processes.count,
            len(devices),
            devices[0].type,
        )
    with observed(decoder, family, record.gate_rule) as observer:
        return collect(
            observer,
            rows.share(processes),
            BatchLimit(config.batch_tokens, devices),
            nothing,
            state=state,
            save_every_batches=config.save_every_batches,
            meter=Meter(devices, is_shown=processes.is_first),
        )


def merged(stats: Mapping[str, RoutingStats], processes: Processes) -> dict[str, RoutingStats]:
    """The sum of all processes' statistics, float64, added in the order of their ranks."""
    names = [field.name for field in fields(RoutingStats)]
    total = {}
    for component, own in stats.items():
        sums_CLE = torch.stack([getattr(own, name) for name in names])
        first, *others = (RoutingStats(*part) for part in processes.gathered(sums_CLE))
        total[component] = sum(others, start=first)
    return total
