"""Decode throughput of servers while their batch is whole, from counters of the servers.

The first requests of a load decode beside the prefill of the others, and the last ones alone. Both
fade with the length of the answers; where these are short, they would hide the steps in between.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

from slimwise.engine.metrics import read_metrics
from slimwise.errors import EngineError

_POLL_S = 0.2
_WHOLE_SHARE = 0.9
"""Of the largest batch that was seen: below, requests have ended and are not replaced."""


class ShortLoadError(EngineError):
    """A load that was over before its batch could be watched."""


@dataclass(frozen=True)
class Sample:
    """Sums over the decode servers at a moment, in seconds."""

    time_s: float
    num_running: float
    generated_tokens: float
    prompt_tokens: float
    """Of prompts that were read to their end."""
    num_answering: float
    """Requests that have their first token and not their last."""
    num_preemptions: float
    cache_share: float
    """The largest share of a server's KV cache in use, not a sum."""

    @property
    def num_reading(self) -> float:
        """Requests whose prompts are read, in more than one step where they are long.

        Requests that were given up before all samples add the same number to each.
        """
        return self.num_running - self.num_answering


@dataclass(frozen=True)
class Steady:
    """Means over the part of a load in which the batch was whole and nothing prefilled."""

    batch: float
    tokens_per_s: float
    seconds: float


def steady_part(samples: Sequence[Sample]) -> Steady:
    """Batch and throughput of that part; ShortLoadError if the load had none."""
    whole = _WHOLE_SHARE * max((sample.num_running for sample in samples), default=0.0)
    batch_s = tokens = seconds = 0.0
    for earlier, later in pairwise(samples):
        reads = max(earlier.num_reading, later.num_reading) > samples[0].num_reading
        prefills = reads or later.prompt_tokens > earlier.prompt_tokens
        if not prefills and min(earlier.num_running, later.num_running) >= whole > 0:
            taken = later.time_s - earlier.time_s
            seconds += taken
            tokens += later.generated_tokens - earlier.generated_tokens
            batch_s += taken * (earlier.num_running + later.num_running) / 2
    if not tokens:
        raise ShortLoadError(
            f"no {_POLL_S:g} s of the load had a whole batch that only decoded, so that its "
            "throughput is unknown. Raise throughput.output_tokens and "
            "serving.max_model_len_tokens."
        )
    return Steady(batch_s / seconds, tokens / seconds, seconds)


@contextmanager
def watched(decode_urls: Sequence[str]) -> Iterator[list[Sample]]:
    """Samples of the decode servers, taken until the block ends; the list grows meanwhile."""
    samples = [_sample(decode_urls)]
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(_POLL_S):
            try:
                samples.append(_sample(decode_urls))
            except EngineError:
                return  # whoever waits for its answers tells why

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield samples
    finally:
        ended.set()
        watcher.join()


def _sample(decode_urls: Sequence[str]) -> Sample:
    scrapes = [read_metrics(url) for url in decode_urls]

    def total(name: str) -> float:
        return sum(scrape.total(f"vllm:{name}") for scrape in scrapes)

    return Sample(
        time_s=time.monotonic(),
        num_running=total("num_requests_running"),
        generated_tokens=total("generation_tokens_total"),
        prompt_tokens=total("prompt_tokens_total"),
        num_answering=total("time_to_first_token_seconds_count") - total("request_success_total"),
        num_preemptions=total("num_preemptions_total"),
        cache_share=max(scrape.total("vllm:kv_cache_usage_perc") for scrape in scrapes),
    )
