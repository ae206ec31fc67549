"""Server arguments that make a server read the turns of the model it serves."""

from pathlib import Path

from slimwise.backbones.base import ChatParsers
from slimwise.backbones.registry import backbone_for, read_model_config
from slimwise.engine.config import ServingConfig
from slimwise.generate.chat_prompt import chat_template

_THOUGHT_MARK = "think>"  # of its beginning or its end
_REASONING, _TOOL_CALLS = "--reasoning-parser", "--tool-call-parser"


def model_parsers(model: Path) -> ChatParsers | None:
    """What reads the turns of the model in the folder; None if only their text can be had."""
    model_type = str(read_model_config(model).get("model_type"))
    return backbone_for(model_type).chat_parsers(chat_template(model))


def with_parsers(serving: ServingConfig, parsers: ChatParsers | None) -> ServingConfig:
    """The configuration of servers that have these parsers, unless it names others itself."""
    if parsers is None:
        return serving
    arguments = (
        *(_REASONING, parsers.reasoning),
        *("--enable-auto-tool-choice", _TOOL_CALLS, parsers.tool_calls),
    )
    return serving.model_copy(update={"extra_args": (*arguments, *serving.extra_args)})


def reads_calls(serving: ServingConfig) -> bool:
    """True if such a server takes calls out of the text."""
    return _has_argument(serving, _TOOL_CALLS)


def thoughts_in_text(serving: ServingConfig, model: Path) -> bool:
    """True if the model in the folder thinks, and such a server leaves the thought in the text."""
    return not _has_argument(serving, _REASONING) and _THOUGHT_MARK in chat_template(model)


def _has_argument(serving: ServingConfig, name: str) -> bool:
    return any(word.partition("=")[0] == name for word in serving.extra_args)
