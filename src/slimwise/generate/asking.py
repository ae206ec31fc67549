"""Puts questions to a server and logs each answer as a row of samples.parquet."""

import asyncio
import json
import logging
import time
from collections.abc import Sequence

from tqdm import tqdm

from slimwise.engine.chat import ChatAnswer
from slimwise.engine.client import AskingLimits, ask_all
from slimwise.generate.answer_log import AnswerLog, Row
from slimwise.generate.questions import Question
from slimwise.generate.served_decoder import ServedDecoder

_log = logging.getLogger(__name__)


def ask_questions(
    base_url: str,
    questions: Sequence[Question],
    log: AnswerLog,
    limits: AskingLimits,
    *,
    served: ServedDecoder,
    thoughts_in_text: bool,
) -> None:
    """Append the answer to every question to the log; EngineError as ask_all raises it.

    thoughts_in_text says that an answer's text begins with its thought.
    """
    start = time.monotonic()
    num_tokens = 0
    with tqdm(
        total=len(questions), desc=str(served.decoder), unit="answer", disable=None
    ) as progress:

        def save(index: int, answer: ChatAnswer) -> None:
            nonlocal num_tokens
            question = questions[index]
            row = _row(question, answer, thoughts_in_text=thoughts_in_text)
            origin = {"decoder": str(served.decoder), "deployment": served.deployment}
            log.append(question.key, {**origin, **row})
            num_tokens += answer.completion_tokens
            progress.update()

        requests = [question.request for question in questions]
        asyncio.run(ask_all(base_url, requests, save, limits))
    seconds = time.monotonic() - start
    _log.info(
        "%s gave %d answers, %d tokens, %.1f s, %.0f tokens/s",
        *(served.decoder, len(questions), num_tokens, seconds, num_tokens / seconds),
    )


def _row(question: Question, answer: ChatAnswer, *, thoughts_in_text: bool) -> Row:
    return {
        **question.key._asdict(),
        "seed": question.request.seed,
        "content": answer.content,
        "reasoning": answer.reasoning,
        "thought_split": not thoughts_in_text,
        "tool_calls": json.dumps(answer.tool_calls),
        "finish_reason": answer.finish_reason,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "latency_s": answer.latency_s,
        "attempts": answer.attempts,
    }
