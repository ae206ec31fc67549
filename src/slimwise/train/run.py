"""Stage train-backbone: the miniature, trained from scratch on its own tasks."""

import logging
import shutil
from pathlib import Path

import torch

from slimwise.artifacts.manifest import write_manifest
from slimwise.backbones.mini.architecture import VOCAB_SIZE, untrained_model
from slimwise.backbones.mini.tokenizer import train_tokenizer
from slimwise.config_digest import config_digest
from slimwise.processes import local_devices
from slimwise.provenance import current_provenance
from slimwise.train.config import TrainConfig
from slimwise.train.loop import train
from slimwise.work_directory import work_directory

SCHEMA = "slimwise.mini_backbone/1"

logger = logging.getLogger(__name__)


def run(config: TrainConfig, *, out: Path, work: Path) -> None:
    """Write the trained checkpoint folder: bf16 weights, tokenizer, train_log.csv, manifest.json.

    The state of an interrupted run lies in work, one folder per configuration.
    """
    (device,) = local_devices(config.device)
    tokenizer = train_tokenizer(VOCAB_SIZE)
    torch.manual_seed(config.seed)
    model = untrained_model().to(device=device, dtype=torch.bfloat16)
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    logger.info("training %.1f M parameters on %s", num_parameters / 1e6, device)
    with work_directory(work / config_digest(config)) as state:
        train(model, tokenizer, config, state)
        out.mkdir(parents=True, exist_ok=True)
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)
        shutil.copyfile(state / "train_log.csv", out / "train_log.csv")
    write_manifest(out, SCHEMA, current_provenance(), {"training": config.model_dump(mode="json")})
