"""The overlay that begins a study of a local model, by what its folder and this host say."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from slimwise.artifacts.atomic import atomic_file
from slimwise.artifacts.chat_row import DATA_FORMATS, folder_files
from slimwise.backbones.config_keys import context_tokens
from slimwise.backbones.registry import InspectedCheckpoint, inspect_checkpoint
from slimwise.calibrate.config import CalibrationConfig
from slimwise.calibrate.mixture import COMPONENTS
from slimwise.config import load_study
from slimwise.core.moe import MoEShape
from slimwise.core.selection import check_num_kept
from slimwise.core.vocabulary import Criterion, Distillation, ServingMode
from slimwise.distill.check import check_distillable
from slimwise.distill.config import DistillationConfig
from slimwise.errors import BackboneError, ConfigError
from slimwise.gpu_lease import visible_gpus

_WARMUP_SHARE = 20  # of the steps, one in so many
_MAX_CONTEXT_TOKENS = 40_960
_ANSWER_SHARE = 0.8  # of the context; the paper's budget of 32,768 tokens in 40,960
_LOADING_SHARE = 1.3
_MB = 10**6


@dataclass(frozen=True)
class Choices:
    """What a checkpoint does not say; null stands for half of the experts, and the paper's data.

    chats is a folder of conversations, a calibration component each file.
    """

    chats: Path | None = None
    num_kept: int | None = None
    steps: int = DistillationConfig().steps


def write_overlay(model: Path, choices: Choices, folder: Path) -> Path:
    """The new file in the folder, of the model folder's name.

    ConfigError if the file is there already, if the chats hold no data, if the model cannot keep
    that many experts, or if the study that it describes is refused; BackboneError for a model of no
    supported family.
    """
    model = model.expanduser().resolve()
    found = inspect_checkpoint(model)
    study = re.sub(r"[^A-Za-z0-9_.-]+", "-", model.name)
    path = folder / f"{study}.yaml"
    if path.exists():
        raise ConfigError(f"{path} is there already. Edit it, or remove it to write it anew.")
    overlay = _overlay(study, model, found, choices)
    load_study(overlay)
    shape = found.shape
    text = (
        f"# {shape.num_layers} layers of {shape.num_experts} experts, top-{shape.top_k}. "
        "Every key is in README.md beside this file.\n"
        + yaml.safe_dump(overlay, sort_keys=False, default_flow_style=None, width=96)
    )
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def _overlay(
    study: str, model: Path, found: InspectedCheckpoint, choices: Choices
) -> dict[str, dict[str, Any] | str]:
    context = min(context_tokens(found.config), _MAX_CONTEXT_TOKENS)
    num_kept = _num_kept(study, found.shape, choices)
    weights_mb = sum(path.stat().st_size for path in model.glob("*.safetensors")) // _MB
    return {
        "study": study,
        "backbone": {"model": str(model), "name": study},
        "calibration": _calibration(choices.chats, context),
        "selection": {"criteria": [str(Criterion.REAP)], "num_kept": [num_kept]},
        "distillation": _distillation(found, choices, context),
        "serving": {"max_model_len_tokens": context},
        "evaluation": {
            "benchmarks": ["gsm8k", "humaneval_plus"],
            "budget_tokens": int(_ANSWER_SHARE * context),
            "colocated_num_kept": {str(ServingMode.SLIMWISE): [num_kept]},
        },
        "resources": {
            "gpus": len(visible_gpus()) if shutil.which("nvidia-smi") else 0,
            "model_memory_mb": max(8000, round(_LOADING_SHARE * weights_mb)),
        },
    }


def _num_kept(study: str, shape: MoEShape, choices: Choices) -> int:
    num_kept = shape.num_experts // 2 if choices.num_kept is None else choices.num_kept
    check_num_kept(num_kept, num_experts=shape.num_experts, top_k=shape.top_k, backbone=study)
    return num_kept


def _calibration(chats: Path | None, context: int) -> dict[str, Any]:
    length = min(CalibrationConfig().max_sequence_tokens, context)
    if chats is None:
        mixture = {"dataset": "reap_mixture", "components": list(COMPONENTS), "packing": "open"}
        return {**mixture, "max_sequence_tokens": length}
    return {
        "dataset": "chats",
        "data_folder": str(chats.expanduser().resolve()),
        "components": list(_components(chats)),
        "max_sequence_tokens": length,
        "allow_short": True,
    }


def _components(chats: Path) -> Sequence[str]:
    files = folder_files(chats)
    if not files:
        raise ConfigError(
            f"{chats} holds no {', '.join(DATA_FORMATS)}. Put conversations there, one a line: "
            '{"messages": [{"role": "user", "content": "..."}, ...]}.'
        )
    return [path.stem for path in files]


def _distillation(found: InspectedCheckpoint, choices: Choices, context: int) -> dict[str, Any]:
    try:
        check_distillable(str(found.config["model_type"]), found.config)
    except BackboneError:
        return {"rules": []}
    return {
        "rules": [str(Distillation.UNIFORM)],
        "dataset": "chat_mixture",
        **_chat_data(choices.chats),
        "max_sequence_tokens": min(DistillationConfig().max_sequence_tokens, context),
        "steps": choices.steps,
        "warmup_steps": min(DistillationConfig().warmup_steps, choices.steps // _WARMUP_SHARE),
        "route": "cached",
        "checkpoint_layers": True,
    }


def _chat_data(chats: Path | None) -> dict[str, Any]:
    if chats is None:
        return {}
    return {"chat_data": str(chats.expanduser().resolve()), "agent_share": 0.0}
