"""Stage export-decoder: the checkpoint that holds only the experts of a keep set."""

import logging
import time
from pathlib import Path

from slimwise.artifacts.atomic import atomic_directory
from slimwise.artifacts.backbone_record import BackboneRecord, read_backbone_record
from slimwise.artifacts.checkpoint_digest import check_unchanged
from slimwise.artifacts.keep_set import KeepSetRecord, check_chosen_for, read_keep_set
from slimwise.artifacts.manifest import CHECKPOINT_SCHEMA, write_manifest
from slimwise.artifacts.weight_files import read_weights
from slimwise.backbones.registry import InspectedCheckpoint, inspect_checkpoint
from slimwise.core.keep_set import KeepSet
from slimwise.errors import KeepSetError
from slimwise.export.config import ExportConfig
from slimwise.export.coverage import check_expert_tensors
from slimwise.export.folder import (
    check_disk_space,
    copy_companions,
    remove_leftovers,
    write_config,
)
from slimwise.export.plan import PlannedTensor, plan_shards, plan_tensors
from slimwise.export.shards import write_shards
from slimwise.export.trained import widen_config, with_trained
from slimwise.export.verify import verify_checkpoint
from slimwise.provenance import current_provenance

logger = logging.getLogger(__name__)


def run(
    config: ExportConfig, *, backbone: Path, keep_set: Path, trained: Path | None = None, out: Path
) -> None:
    """Write the pruned checkpoint's folder, verified, its manifest last.

    trained is the manifest of a distilled decoder, whose tensors replace the backbone's.
    Everything that can be refused is refused before a weight is read. KeepSetError if the keep set
    is another model's, or keeps different counts in different layers.
    """
    record, chosen = read_backbone_record(backbone), read_keep_set(keep_set)
    check_keep_set(chosen, record)
    _warn_of_uneven_split(chosen.keep_set.num_kept_per_layer[0], config.expert_parallel_size)
    check_unchanged(record)
    remove_leftovers(out)
    found = inspect_checkpoint(record.model)
    planned = _plan(record, found, chosen, trained)
    check_disk_space(out, record.model, sum(tensor.num_bytes for tensor in planned))
    started = time.perf_counter()
    with atomic_directory(out) as folder:
        shards = plan_shards(planned, int(config.max_shard_gib * 2**30))
        digests = write_shards(folder, shards, config.num_threads)
        copy_companions(record.model, folder)
        write_config(record.model, folder, found, chosen.keep_set.num_kept_per_layer[0])
        if trained is not None:
            widen_config(folder)
        verify_checkpoint(folder, planned)
        write_manifest(folder, CHECKPOINT_SCHEMA, current_provenance(), _summary(chosen), digests)
    _log_speed(planned, chosen.keep_set, time.perf_counter() - started)


def check_keep_set(chosen: KeepSetRecord, record: BackboneRecord) -> None:
    """Raise KeepSetError unless the keep set is the backbone's, of one count in all layers."""
    check_chosen_for(chosen, record)
    found, shape = chosen.keep_set, record.shape
    stated = (found.num_layers, found.num_experts, found.top_k)
    if stated != (shape.num_layers, shape.num_experts, shape.top_k):
        raise KeepSetError(
            f"keep set is for {stated[0]} layers x {stated[1]} experts, top-{stated[2]}; "
            f"{record.name} has {shape.num_layers} x {shape.num_experts}, top-{shape.top_k}. Run "
            "the select_experts rule again."
        )
    if not found.is_uniform:
        counts = found.num_kept_per_layer
        others = [f"layer {n} {count}" for n, count in enumerate(counts) if count != counts[0]]
        raise KeepSetError(
            f"a checkpoint has one num_experts for all layers, but layer 0 keeps {counts[0]}, "
            f"{', '.join(others)}. Keep equal counts, or serve the keep set by masking."
        )


def _warn_of_uneven_split(num_kept: int, expert_parallel_size: int) -> None:
    if num_kept % expert_parallel_size:
        logger.warning(
            "%d kept experts do not divide by export.expert_parallel_size = %d: some GPUs would "
            "hold one expert more, and servers may refuse. Keep a multiple of %d.",
            num_kept,
            expert_parallel_size,
            expert_parallel_size,
        )


def _plan(
    record: BackboneRecord,
    found: InspectedCheckpoint,
    chosen: KeepSetRecord,
    trained: Path | None,
) -> list[PlannedTensor]:
    entries = read_weights(record.model)
    if trained is not None:
        entries = with_trained(entries, trained, chosen)
    check_expert_tensors(entries.values(), found.backbone, found.config)
    return plan_tensors(entries, found.backbone, found.config, chosen.keep_set)


def _summary(chosen: KeepSetRecord) -> dict[str, object]:
    return {
        "backbone_digest": chosen.backbone_digest,
        "criterion": chosen.criterion,
        "num_kept": chosen.keep_set.num_kept_per_layer[0],
    }


def _log_speed(planned: list[PlannedTensor], keep_set: KeepSet, seconds: float) -> None:
    size_gib = sum(tensor.num_bytes for tensor in planned) / 2**30
    logger.info(
        "exported %d of %d experts a layer: %d tensors, %.3f GiB, %.1f s, %.2f GiB/s",
        keep_set.num_kept_per_layer[0],
        keep_set.num_experts,
        len(planned),
        size_gib,
        seconds,
        size_gib / seconds,
    )
