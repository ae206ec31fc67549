"""Server arguments that make a server read the turns of the model it serves."""

from pathlib import Path

from slimwise.backbones.base import ChatParsers
from slimwise.backbones.registry import backbone_for, read_model_config
from slimwise.engine.config import ServingConfig
from slimwise.generate.chat_prompt import chat_template

_THOUGHT_MARK = "think>"  # of its beginning or its end


def model_parsers(model: Path) -> ChatParsers | None:
    """What reads the turns of the model in the folder; None if only their text can be had."""
    model_type = str(read_model_config(model).get("model_type"))
    return backbone_for(model_type).chat_parsers(chat_template(model))


def thoughts_in_text(model: Path) -> bool:
    """True if the model in the folder thinks, and nothing takes its thoughts out of the text."""
    return model_parsers(model) is None and _THOUGHT_MARK in chat_template(model)


def with_parsers(serving: ServingConfig, parsers: ChatParsers | None) -> ServingConfig:
    """The configuration of servers that have these parsers, unless it names others itself."""
    if parsers is None:
        return serving
    arguments = (
        *("--reasoning-parser", parsers.reasoning),
        *("--enable-auto-tool-choice", "--tool-call-parser", parsers.tool_calls),
    )
    return serving.model_copy(update={"extra_args": (*arguments, *serving.extra_args)})
