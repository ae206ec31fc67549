"""The miniature's chat form: one user turn, an opened thought, the answer after it."""

import random
from typing import Any

from slimwise.backbones.mini.tasks.item import TaskFamily, TaskItem
from slimwise.backbones.mini.tasks.split import Split, draw_item
from slimwise.backbones.qwen_chat import THOUGHT_END
from slimwise.errors import ConfigError

CHAT_TEMPLATE = """\
{% if tools %}<|im_start|>system
{% for tool in tools %}{{ tool.function.name }}(\
{% for name, schema in tool.function.parameters.properties.items() %}\
{{ name }}: {{ schema.type }}{% if not loop.last %}, {% endif %}{% endfor %}\
)
{% endfor %}<|im_end|>
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}"""

_MAX_DRAWS = 1000


def messages(item: TaskItem) -> list[dict[str, str]]:
    """The item's prompt as the chat API takes it."""
    return [{"role": "user", "content": item.prompt}]


def render(tokenizer: Any, item: TaskItem) -> tuple[list[int], list[int]]:
    """Token ids of the prompt (thought opened) and of the response with its end-of-turn token."""
    prompt = tokenizer.apply_chat_template(
        messages(item),
        tools=list(item.tools) or None,
        add_generation_prompt=True,
        tokenize=False,
    )
    encoded = tokenizer([prompt, f"{item.response}<|im_end|>"], add_special_tokens=False).input_ids
    return encoded[0], encoded[1]


def draw_rendered(
    tokenizer: Any, family: TaskFamily, rng: random.Random, max_tokens: int
) -> tuple[list[int], list[int]]:
    """Prompt and response of the next training item that has at most max_tokens in all.

    ConfigError if none seems to have so few.
    """
    for _ in range(_MAX_DRAWS):
        prompt, response = render(tokenizer, draw_item(family, rng, Split.TRAIN))
        if len(prompt) + len(response) <= max_tokens:
            return prompt, response
    raise ConfigError(
        f"{_MAX_DRAWS} items of {family.name} were drawn, all longer than max_sequence_tokens = "
        f"{max_tokens}. Raise max_sequence_tokens."
    )


def split_thought(content: str) -> tuple[str, str | None]:
    """(thought, answer); the answer is None if the thought never ended."""
    thought, end, answer = content.partition(THOUGHT_END)
    return thought, answer.removesuffix("<|im_end|>").strip() if end else None
