"""Stage distill-decoder: takes trained tensors that ship with the miniature, or trains them.

Torch-free until something is trained.
"""

import logging
import os
import shutil
from pathlib import Path

from slimwise.artifacts.atomic import atomic_directory
from slimwise.artifacts.backbone_record import read_backbone_record
from slimwise.artifacts.keep_set import read_keep_set
from slimwise.artifacts.trained_record import TrainedRecord, read_trained_record
from slimwise.core.vocabulary import Distillation
from slimwise.distill.config import DistillationConfig
from slimwise.distill.record import trained_record
from slimwise.errors import ArtifactError

logger = logging.getLogger(__name__)


def run(
    config: DistillationConfig,
    *,
    backbone: Path,
    keep_set: Path,
    rule: Distillation,
    embedded: Path | None = None,
    out: Path,
    work: Path,
) -> None:
    """Write trained.safetensors, the log of the steps and manifest.json.

    They are those in the folder embedded, provenance and all, if it is there, if the configuration
    wants it, and if they follow from the same backbone, keep set and recipe. ArtifactError if the
    folder is damaged.
    """
    wanted = trained_record(config, read_backbone_record(backbone), read_keep_set(keep_set), rule)
    if config.embedded and embedded is not None and embedded.is_dir() and _fits(embedded, wanted):
        _take(embedded, out)
        return
    from slimwise.distill.run import run as train

    train(config, backbone=backbone, keep_set=keep_set, rule=rule, out=out, work=work)


def _fits(folder: Path, wanted: TrainedRecord) -> bool:
    try:
        found = read_trained_record(folder)
    except ArtifactError as failure:
        raise ArtifactError(
            f"the trained tensors that ship in {folder} cannot be used: {failure} Restore the "
            "folder from the repository, or set distillation.embedded to false to train them."
        ) from failure
    differences = wanted.differences(found)
    if differences:
        logger.warning(
            "the tensors in %s were trained with another %s: training anew",
            folder,
            ", ".join(differences),
        )
    return not differences


def _take(folder: Path, out: Path) -> None:
    if int(os.environ.get("RANK", "0")) != 0:
        return  # One of torchrun's processes writes.
    with atomic_directory(out) as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
    logger.info("took the trained tensors that ship in %s; nothing was trained", folder)
