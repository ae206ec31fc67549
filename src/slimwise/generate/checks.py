"""What is refused before a server starts."""

from collections.abc import Sequence
from pathlib import Path

from slimwise.core.vocabulary import DecoderId
from slimwise.engine.config import ServingConfig
from slimwise.errors import BackboneError, ConfigError
from slimwise.generate.chat_prompt import prompt_lengths
from slimwise.generate.questions import Question


def model_folder(backbone: Path, checkpoint: Path | None, decoder: DecoderId) -> Path:
    """Absolute path of the model that answers: the backbone, or the checkpoint of a manifest.

    ConfigError if a pruned decoder has no checkpoint or the full one has, BackboneError if the
    folder is not a model.
    """
    if decoder.is_full != (checkpoint is None):
        given = "no checkpoint" if checkpoint is None else f"checkpoint {checkpoint}"
        raise ConfigError(
            f"decoder {decoder} was given {given}: the full decoder runs on the backbone, every "
            "other one on its own checkpoint."
        )
    folder = (checkpoint.parent if checkpoint else backbone).resolve()
    if not (folder / "config.json").is_file():
        raise BackboneError(
            f"{folder} is not a model folder: it has no config.json. Run the rule that writes it, "
            "or set backbone.model."
        )
    return folder


def check_prompts_fit(questions: Sequence[Question], serving: ServingConfig, model: Path) -> None:
    """ConfigError names the longest prompt if it leaves too little room for the budget."""
    asked = list({question.key[:2]: question for question in questions}.values())
    if not asked:
        raise ConfigError(
            "there is nothing to ask: evaluation.greedy is off and evaluation.sampled_runs = 0."
        )
    lengths = prompt_lengths([question.request for question in asked], model)
    length, longest = max(zip(lengths, asked, strict=True), key=lambda pair: pair[0])
    needed = length + longest.request.max_tokens
    if needed > serving.max_model_len_tokens:
        raise ConfigError(
            f"{longest.key.benchmark} item {longest.key.item_id} has a prompt of {length} tokens; "
            f"with evaluation.budget_tokens = {longest.request.max_tokens} it needs "
            f"serving.max_model_len_tokens = {needed} or more, not {serving.max_model_len_tokens}."
        )
