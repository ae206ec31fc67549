"""Model folders of a shape alone, for which vLLM draws random weights."""

import json
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import PreTrainedTokenizerFast

from slimwise.artifacts.checkpoint_digest import checkpoint_digest
from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.backbones.config_keys import count
from slimwise.backbones.registry import backbone_for, inspect_checkpoint
from slimwise.core.skew import popular_keep_set
from slimwise.core.vocabulary import Criterion
from slimwise.provenance import current_provenance


def write_random_model(config_file: Path, num_experts: int | None, folder: Path) -> Path:
    """The folder of the configuration's model, with that many experts a layer unless null.

    Its file of weights is empty: it marks the folder as a model's.
    """
    config = _config(config_file)
    if num_experts is not None:
        config = backbone_for(config["model_type"]).pruned_config(config, num_experts)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1), "utf-8")
    save_file({}, folder / "model.safetensors")
    return folder


def count_experts(config_file: Path) -> int:
    """Experts of each layer of the configuration's model."""
    config = _config(config_file)
    return backbone_for(config["model_type"]).shape(config).num_experts


def write_word_tokenizer(config_file: Path, folder: Path) -> Path:
    """A folder of its own for a tokenizer with a word for each id: n words are n tokens.

    Beside the model's config.json, transformers would take it for the family's tokenizer.
    """
    config = _config(config_file)
    size = count(config.get("text_config", config), "vocab_size")
    words = Tokenizer(WordLevel({f"w{number}": number for number in range(size)}, unk_token="w0"))
    words.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)
    return folder


def write_popular_keep_set(model: Path, num_kept: int, seed: int, path: Path) -> Path:
    """The keep set of the experts that a skew of that seed makes popular in the folder's model."""
    found = inspect_checkpoint(model)
    shape = found.shape.num_layers, found.shape.num_experts, found.shape.top_k
    keep_set = popular_keep_set(shape, num_kept, seed)
    model_type = found.config["model_type"]
    record = KeepSetRecord(keep_set, Criterion.FREQUENCY, checkpoint_digest(model), model_type)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_keep_set(path, record, current_provenance())
    return path


def _config(config_file: Path) -> dict[str, Any]:
    return json.loads(config_file.read_text("utf-8"))
