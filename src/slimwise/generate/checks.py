"""Prompts that cannot be answered are refused before a server starts."""

from collections.abc import Sequence
from pathlib import Path

from slimwise.engine.config import ServingConfig
from slimwise.errors import ConfigError
from slimwise.generate.chat_prompt import prompt_lengths
from slimwise.generate.questions import Question, distinct_items


def check_prompts_fit(questions: Sequence[Question], serving: ServingConfig, model: Path) -> None:
    """ConfigError names the longest prompt if it leaves too little room for the budget."""
    asked = distinct_items(questions)
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
