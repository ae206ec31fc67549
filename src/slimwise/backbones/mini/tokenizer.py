"""The miniature's tokenizer: byte-level BPE with single digits, trained on its own tasks."""

import json
import random
from collections.abc import Iterator

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from slimwise.backbones.mini.chat import CHAT_TEMPLATE
from slimwise.backbones.mini.tasks.item import TaskItem
from slimwise.backbones.mini.tasks.registry import BACKGROUND, PRACTISED
from slimwise.backbones.mini.tasks.split import Split, draw_item

CONTROL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MARKUP_TOKENS = ("<think>", "</think>", "<tool_call>", "</tool_call>")


def train_tokenizer(vocab_size: int, *, items_per_family: int = 400) -> PreTrainedTokenizerFast:
    """A tokenizer whose control and markup tokens take ids 0..6, in that order.

    Markup is ordinary text to a decoder, so servers return it unless asked otherwise.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(  # pyright: ignore[reportAttributeAccessIssue]
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()  # pyright: ignore[reportAttributeAccessIssue]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[*CONTROL_TOKENS, *MARKUP_TOKENS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(items_per_family), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=_with_plain_markup(tokenizer),
        pad_token=CONTROL_TOKENS[0],
        eos_token=CONTROL_TOKENS[2],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )


def _with_plain_markup(tokenizer: Tokenizer) -> Tokenizer:
    # The trainer calls every reserved token special, which decoders leave out of the text.
    fields = json.loads(tokenizer.to_str())
    for token in fields["added_tokens"]:
        token["special"] = token["content"] in CONTROL_TOKENS
    return Tokenizer.from_str(json.dumps(fields))


def _corpus(items_per_family: int) -> Iterator[str]:
    rng = random.Random(0)
    for family in (*PRACTISED.values(), *BACKGROUND.values()):
        for _ in range(items_per_family):
            yield _plain_text(draw_item(family, rng, Split.TRAIN))


def _plain_text(item: TaskItem) -> str:
    signatures = [str(tool["function"]) for tool in item.tools]
    text = "\n".join([*signatures, item.prompt, item.response])
    for token in MARKUP_TOKENS:
        text = text.replace(token, "")
    return text
