"""Everything that one decoder is asked: each item once a run, with the seed of that request."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from slimwise.benchmarks.base import Benchmark, BenchmarkItem
from slimwise.benchmarks.registry import benchmark_named
from slimwise.core.vocabulary import Decoding, ServingMode
from slimwise.engine.chat import ChatRequest
from slimwise.generate.config import EvaluationConfig

_SEED_BYTES = 4


class QuestionKey(NamedTuple):
    """What tells two answers of one decoder apart."""

    mode: ServingMode
    benchmark: str
    item_id: str
    decoding: Decoding
    run: int


@dataclass(frozen=True)
class Question:
    """One item in one run."""

    key: QuestionKey
    item: BenchmarkItem
    request: ChatRequest


@dataclass(frozen=True)
class ServerTraits:
    """What requests must respect: modes that they name, and a parser that reads their calls."""

    by_pool: bool
    parses_calls: bool


def questions(
    config: EvaluationConfig, modes: Sequence[ServingMode], server: ServerTraits
) -> list[Question]:
    """All questions, the greedy run first; ConfigError names an unknown benchmark.

    The same item of the same run has the same seed in every mode and for every decoder.
    """
    items = {
        each.name: each.items(config.items_asked(each.name, Decoding.GREEDY))
        for each in _benchmarks(config)
    }
    return [
        Question(key, item, _request(key, item, config, server))
        for mode in modes
        for decoding, run in _runs(config)
        for name in config.benchmarks
        for item in items[name][: config.items_asked(name, decoding)]
        for key in [QuestionKey(mode, name, item.item_id, decoding, run)]
    ]


def data_origins(config: EvaluationConfig) -> dict[str, str]:
    """Where the items of each benchmark come from, those that are made here left out."""
    origins = {each.name: each.origin() for each in _benchmarks(config)}
    return {name: origin for name, origin in origins.items() if origin}


def distinct_items(asked: Iterable[Question]) -> list[Question]:
    """One question of each item: other runs and modes ask the same."""
    return list({question.key[1:3]: question for question in asked}.values())


def _benchmarks(config: EvaluationConfig) -> list[Benchmark]:
    return [benchmark_named(name, config.data_settings(name)) for name in config.benchmarks]


def _runs(config: EvaluationConfig) -> Iterator[tuple[Decoding, int]]:
    if config.greedy:
        yield Decoding.GREEDY, 0
    for run in range(config.sampled_runs):
        yield Decoding.SAMPLED, run


def _request(
    key: QuestionKey, item: BenchmarkItem, config: EvaluationConfig, server: ServerTraits
) -> ChatRequest:
    is_greedy = key.decoding is Decoding.GREEDY
    return ChatRequest(
        messages=item.messages,
        tools=item.tools,
        temperature=0.0 if is_greedy else config.temperature,
        top_p=1.0 if is_greedy else config.top_p,
        max_tokens=config.budget_tokens,
        seed=_seed(config.seed + key.run, key),
        thinking=config.thinking,
        parses_calls=item.native_calls and server.parses_calls,
        mode=key.mode if server.by_pool else None,
    )


def _seed(run_seed: int, key: QuestionKey) -> int:
    # One seed for all items would give them the same noise, and their errors would move together.
    text = f"{run_seed}:{key.benchmark}:{key.item_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:_SEED_BYTES], "big") >> 1
