"""Questions that cannot be answered are refused before a server starts."""

from collections.abc import Sequence
from pathlib import Path

from slimwise.engine.config import ServingConfig
from slimwise.errors import ConfigError
from slimwise.generate.chat_prompt import prompt_lengths
from slimwise.generate.questions import Question, ServerTraits, distinct_items


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


def check_calls_are_read(questions: Sequence[Question], server: ServerTraits) -> None:
    """ConfigError names a benchmark of native calls that the server would leave in the text."""
    for question in questions:
        if question.item.native_calls and not server.parses_calls:
            raise ConfigError(
                f"evaluation.benchmarks names {question.key.benchmark}, but no parser is known for "
                "the calls of this model and chat template: each would count as none. Leave it "
                'out, or name one in serving.extra_args: ["--enable-auto-tool-choice", '
                '"--tool-call-parser", ...].'
            )
