"""Puts questions to a server and logs each answer as a row of samples.parquet."""

import asyncio
import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from slimwise.core.vocabulary import DecoderId, Deployment
from slimwise.engine.client import ChatAnswer, ask_all
from slimwise.generate.answer_log import Row, append_answer
from slimwise.generate.questions import Question

_log = logging.getLogger(__name__)


def ask_questions(
    base_url: str,
    questions: Sequence[Question],
    log: Path,
    *,
    decoder: DecoderId,
    concurrency: int,
    timeout_s: float,
) -> None:
    """Append the answer to every question to the log; EngineError as ask_all raises it."""
    start = time.monotonic()
    lengths: list[int] = []
    with tqdm(total=len(questions), desc=str(decoder), unit="answer", disable=None) as progress:

        def save(index: int, answer: ChatAnswer) -> None:
            append_answer(log, _row(questions[index], answer, decoder))
            lengths.append(answer.completion_tokens)
            progress.update()

        requests = [question.request for question in questions]
        asyncio.run(ask_all(base_url, requests, save, concurrency=concurrency, timeout_s=timeout_s))
    seconds = time.monotonic() - start
    _log.info(
        "%s gave %d answers, %d tokens, %.1f s, %.0f tokens/s",
        *(decoder, len(lengths), sum(lengths), seconds, sum(lengths) / seconds),
    )


def _row(question: Question, answer: ChatAnswer, decoder: DecoderId) -> Row:
    return {
        "decoder": str(decoder),
        "deployment": Deployment.COLOCATED,
        **question.key._asdict(),
        "seed": question.request.seed,
        "content": answer.content,
        "finish_reason": answer.finish_reason,
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.completion_tokens,
        "latency_s": answer.latency_s,
        "reference": json.dumps(question.item.reference, sort_keys=True),
    }
