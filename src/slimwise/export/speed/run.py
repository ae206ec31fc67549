"""Stage measure-export: GiB/s of an export beside a plain copy of as many bytes, and its memory."""

import json
import logging
import multiprocessing
import os
import resource
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from slimwise.artifacts.backbone_record import (
    BackboneRecord,
    write_backbone_record,
)
from slimwise.artifacts.checkpoint_digest import checkpoint_digest
from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.backbones.published import language_model
from slimwise.backbones.registry import inspect_checkpoint
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion
from slimwise.export import run as export
from slimwise.export.config import ExportConfig
from slimwise.export.speed.config import ExportSpeedConfig
from slimwise.export.speed.synthetic import write_synthetic_checkpoint
from slimwise.provenance import current_provenance
from slimwise.work_directory import work_directory

logger = logging.getLogger(__name__)

_GIB = 2**30


def run(config: ExportSpeedConfig, *, out: Path, work: Path) -> None:
    """Append one row of JSON; work needs room for the checkpoint and two pruned ones.

    Copies and exports alternate, each in a process of its own. Both read as many bytes from the
    disk, not from its cache, and both end when everything is on the disk.
    """
    with work_directory(work):
        shutil.rmtree(work / "source", ignore_errors=True)
        size = write_synthetic_checkpoint(
            work / "source", language_model(config.shape, config.num_layers), config.shard_gib
        )
        _prepare(config, work)
        exports, copies = [], []
        for _ in range(config.repeats):
            exports.append(_in_a_process(_export, work))
            copies.append(_in_a_process(_copy, work))
            logger.info("export %.1f s %.2f GiB, copy %.1f s", *exports[-1], copies[-1][0])
        row = _row(config, size, _pruned_bytes(work), exports, copies)
        out.parent.mkdir(parents=True, exist_ok=True)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        for folder in ("source", "pruned", "copy"):
            shutil.rmtree(work / folder)


def _prepare(config: ExportSpeedConfig, work: Path) -> None:
    source = work / "source"
    found = inspect_checkpoint(source)
    digest = checkpoint_digest(source)
    shape = found.shape
    kept = tuple(n * shape.num_experts // config.num_kept for n in range(config.num_kept))
    keep_set = KeepSet((kept,) * shape.num_layers, shape.num_experts, shape.top_k)
    model_type = found.config["model_type"]
    record = BackboneRecord(
        name="synthetic",
        model=source,
        model_type=model_type,
        architecture=found.config["architectures"][0],
        shape=shape,
        gate_rule=found.gate_rule,
        dtype="bfloat16",
        digest=digest,
    )
    write_backbone_record(work / "backbone.json", record, current_provenance())
    chosen = KeepSetRecord(keep_set, Criterion.FREQUENCY, digest, model_type)
    write_keep_set(work / "keep_set.json", chosen, current_provenance())


def _in_a_process(measured: Callable[[Path], None], work: Path) -> tuple[float, float]:
    """Seconds of the call, and the peak resident memory of its process, GiB."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measure, args=(measured, work, sender))
    process.start()
    # Ours alone is left open by a process that dies, and then reading would wait for ever.
    sender.close()
    seconds, peak_gib = receiver.recv()
    process.join()
    return seconds, peak_gib


def _measure(measured: Callable[[Path], None], work: Path, sender: Any) -> None:
    os.sync()
    for path in work.glob("*/*"):
        _leave_cache(path)
    started = time.perf_counter()
    measured(work)
    os.sync()
    seconds = time.perf_counter() - started
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sender.send((seconds, peak_kib * 1024 / _GIB))


def _leave_cache(path: Path) -> None:
    """Let the next reader of the file take it from the disk."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _export(work: Path) -> None:
    shutil.rmtree(work / "pruned", ignore_errors=True)
    export.run(
        ExportConfig(),
        backbone=work / "backbone.json",
        keep_set=work / "keep_set.json",
        out=work / "pruned",
    )


def _copy(work: Path) -> None:
    shutil.rmtree(work / "copy", ignore_errors=True)
    shutil.copytree(work / "pruned", work / "copy")


def _pruned_bytes(work: Path) -> int:
    return sum(path.stat().st_size for path in (work / "pruned").iterdir())


def _row(
    config: ExportSpeedConfig,
    source_bytes: int,
    pruned_bytes: int,
    exports: list[tuple[float, float]],
    copies: list[tuple[float, float]],
) -> dict[str, Any]:
    written_gib = pruned_bytes / _GIB
    return {
        "shape": str(config.shape),
        "num_layers": config.num_layers,
        "num_kept": config.num_kept,
        "checkpoint_gib": source_bytes / _GIB,
        "pruned_gib": written_gib,
        "gib_per_s": written_gib / median(seconds for seconds, _ in exports),
        "copy_gib_per_s": written_gib / median(seconds for seconds, _ in copies),
        "peak_rss_gib": max(peak for _, peak in exports),
        "export_s": [seconds for seconds, _ in exports],
        "copy_s": [seconds for seconds, _ in copies],
        **asdict(current_provenance()),
    }
