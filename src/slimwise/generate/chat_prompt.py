"""Tokens of chat prompts as a server makes them, without a model library.

Templates are rendered by the rules of transformers, whose import takes seconds for each decoder.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from slimwise.artifacts.strict_json import parse_json
from slimwise.engine.chat import ChatRequest, template_words
from slimwise.errors import BackboneError

_TOKEN_NAMES = ("bos_token", "eos_token", "pad_token", "unk_token")


def prompt_lengths(requests: Iterable[ChatRequest], model: Path) -> list[int]:
    """Prompt tokens of each request, the opened assistant turn included.

    BackboneError if the model folder has no tokenizer, or no chat template that takes the request.
    """
    prompts = _rendered(requests, model)
    tokenizer = _tokenizer(model)
    return [len(encoding) for encoding in tokenizer.encode_batch(prompts, add_special_tokens=False)]


def answer_tokens(
    turns: Sequence[tuple[ChatRequest, str]], model: Path
) -> list[tuple[list[int], list[int]]]:
    """Token ids of the prompt and of the answer of each turn; raises as prompt_lengths does."""
    tokenizer = _tokenizer(model)
    texts = (_rendered([request for request, _ in turns], model), [answer for _, answer in turns])
    prompts, answers = (tokenizer.encode_batch(text, add_special_tokens=False) for text in texts)
    return [(prompt.ids, answer.ids) for prompt, answer in zip(prompts, answers, strict=True)]


def _rendered(requests: Iterable[ChatRequest], model: Path) -> list[str]:
    tokens = _special_tokens(model)
    try:
        template = _environment().from_string(chat_template(model))
        return [
            template.render(
                messages=list(request.messages),
                tools=list(request.tools) or None,
                documents=None,
                add_generation_prompt=True,
                **template_words(request),
                **tokens,
            )
            for request in requests
        ]
    except TemplateError as failure:
        raise BackboneError(
            f"the chat template of {model} refuses a prompt: {failure}."
        ) from failure


def _tokenizer(model: Path) -> Tokenizer:
    path = model / "tokenizer.json"
    if not path.is_file():
        raise BackboneError(f"{model} has no tokenizer.json. Export or download the model again.")
    try:
        return Tokenizer.from_file(str(path))
    except Exception as failure:  # The library raises nothing narrower.
        raise BackboneError(
            f"{path} is no tokenizer: {failure}. Export or download the model again."
        ) from failure


def chat_template(model: Path) -> str:
    """The source of the model's chat template; BackboneError if it has none."""
    template_path = model / "chat_template.jinja"
    source = _text(template_path) if template_path.is_file() else None
    source = source or _tokenizer_config(model).get("chat_template")
    if not isinstance(source, str):
        raise BackboneError(
            f"{model} has no chat template: neither chat_template.jinja nor a text of that name in "
            "tokenizer_config.json. Use an instruction-tuned model."
        )
    return source


def _special_tokens(model: Path) -> dict[str, str]:
    """The tokens that a template may name."""
    config = _tokenizer_config(model)
    return {name: _token_text(config[name]) for name in _TOKEN_NAMES if config.get(name)}


def _tokenizer_config(model: Path) -> dict[str, Any]:
    path = model / "tokenizer_config.json"
    if not path.is_file():
        return {}
    try:
        return dict(parse_json(_text(path), constants=True))
    except (ValueError, TypeError) as failure:
        raise BackboneError(
            f"{path} is no JSON object: {failure}. Export or download the model again."
        ) from failure


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        raise BackboneError(
            f"cannot read {path}: {failure}. Export or download the model again."
        ) from failure


def _token_text(token: Any) -> str:
    return token["content"] if isinstance(token, dict) else token


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = datetime.now().strftime
    return environment


def _to_json(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
    # Jinja's own filter escapes HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, **options)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
