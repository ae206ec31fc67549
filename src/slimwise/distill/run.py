"""Stage distill-decoder: a second shared expert, routers and norms for one pruned decoder."""

import logging
import shutil
import time
from pathlib import Path

from slimwise.artifacts.backbone_record import BackboneRecord, read_backbone_record
from slimwise.artifacts.checkpoint_digest import check_unchanged
from slimwise.artifacts.distill_log import LOG_NAME
from slimwise.artifacts.keep_set import KeepSetRecord, check_chosen_for, read_keep_set
from slimwise.artifacts.trained_record import TrainedRecord, write_trained_record
from slimwise.artifacts.trained_tensors import write_trained_tensors
from slimwise.artifacts.weight_files import read_weights
from slimwise.backbones.linear_attention import use_blocked_delta_rule
from slimwise.backbones.loading import load_causal_model, load_tokenizer
from slimwise.backbones.registry import read_model_config
from slimwise.config_digest import config_digest
from slimwise.core.vocabulary import Distillation
from slimwise.distill.check import check_distillable
from slimwise.distill.config import DistillationConfig
from slimwise.distill.loop import distil
from slimwise.distill.merge import checkpoint_names, merged_tensors, on_cpu
from slimwise.distill.record import trained_record
from slimwise.distill.sources import sequence_source
from slimwise.distill.student import Student, make_student
from slimwise.errors import ConfigError
from slimwise.processes import Processes, joined_processes, local_devices
from slimwise.provenance import code_digest, current_provenance
from slimwise.work_directory import work_directory

logger = logging.getLogger(__name__)


def run(
    config: DistillationConfig,
    *,
    backbone: Path,
    keep_set: Path,
    rule: Distillation,
    out: Path,
    work: Path,
) -> None:
    """Write trained.safetensors, the log of the steps and manifest.json.

    Started by torchrun, all its processes distil together. An interrupted run continues at its
    last resume point in work, under the same configuration, model, keep set and code only.
    """
    record, chosen = read_backbone_record(backbone), read_keep_set(keep_set)
    _check(config, record, chosen, rule)
    identity = config_digest(
        config.only(rule), record.digest, str(chosen.keep_set), code_digest(__name__)
    )
    devices = local_devices(config.device)
    with joined_processes(devices[0]) as processes:
        model = load_causal_model(record.model, config.dtype, devices)
        use_blocked_delta_rule(model)
        student = make_student(model, chosen.keep_set, record.gate_rule, seed=config.seed)
        state = work / identity
        if processes.is_first:
            with work_directory(state):
                _distil(student, record, rule, config, state, processes)
                _write(student, record, out, state, trained_record(config, record, chosen, rule))
        else:
            _distil(student, record, rule, config, state, processes)


def _check(
    config: DistillationConfig, record: BackboneRecord, chosen: KeepSetRecord, rule: Distillation
) -> None:
    if rule not in config.rules:
        raise ConfigError(
            f"split rule '{rule}' is not in the study: distillation.rules has "
            f"{', '.join(config.rules) or 'none'}. Add it there, or ask for one of these."
        )
    check_distillable(record.name, read_model_config(record.model))
    check_chosen_for(chosen, record)
    check_unchanged(record)


def _distil(
    student: Student,
    record: BackboneRecord,
    rule: Distillation,
    config: DistillationConfig,
    work: Path,
    processes: Processes,
) -> None:
    tokenizer = load_tokenizer(record.model)
    if config.checkpoint_layers:
        student.checkpoint_layers()
    num_trained = sum(parameter.numel() for parameter in student.trained().values())
    logger.info(
        "distilling %.3f M parameters on %d x %s",
        num_trained / 1e6, processes.count, next(student.model.parameters()).device.type,
    )  # fmt: skip
    started = time.perf_counter()
    source = sequence_source(config, tokenizer)
    distil(student, source, rule, config, work=work, processes=processes)
    logger.info("distilled to step %d in %.1f s", config.steps, time.perf_counter() - started)


def _write(
    student: Student, record: BackboneRecord, out: Path, work: Path, trained: TrainedRecord
) -> None:
    tensors = merged_tensors(student)
    names = checkpoint_names(tensors, read_weights(record.model))
    out.mkdir(parents=True, exist_ok=True)
    write_trained_tensors(out, on_cpu({names[name]: tensors[name] for name in tensors}))
    shutil.copyfile(work / LOG_NAME, out / LOG_NAME)
    write_trained_record(out, trained, current_provenance())
