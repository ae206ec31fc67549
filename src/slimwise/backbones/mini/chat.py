"""The miniature's chat form: one user turn, an opened thought, the answer after it."""

from typing import Any

from slimwise.backbones.mini.tasks.item import TaskItem

THOUGHT_END = "</think>"

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


def split_thought(content: str) -> tuple[str, str | None]:
    """(thought, answer); the answer is None if the thought never ended."""
    thought, end, answer = content.partition(THOUGHT_END)
    return thought, answer.removesuffix("<|im_end|>").strip() if end else None
