"""How much of the prompts the decode servers computed, which should be the last token at most.

A decode server that is preempted, reuses its own cache, or is asked without transfer parameters
prefills with the decoder's weights and answers all the same. One that reads late may read what
another prompt has left. Only counters tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from slimwise.engine.metrics import ServerMetrics, read_metrics
from slimwise.errors import InvalidAnswersError

_BY_SOURCE = "vllm:prompt_tokens_by_source_total"
_FIRST_TOKENS = "vllm:time_to_first_token_seconds_count"
_LATE_READS = "vllm:nixl_num_notifications_after_expiry_total"
_EXPIRED = "vllm:nixl_num_kv_expired_reqs_total"


@dataclass(frozen=True)
class DecodeCounts:
    """Sums over the servers since they started; subtract two for a run in between."""

    num_requests: int
    """Requests that have their first token."""
    computed_prompt_tokens: int
    """The last token of a prompt counts for hybrids, and for prompts of one token, only."""
    locally_cached_prompt_tokens: int
    received_prompt_tokens: int
    num_preemptions: int
    num_late_reads: int
    """Caches that prefill servers had given up before they were read, or, in vLLM 0.26, at all."""

    def __sub__(self, earlier: "DecodeCounts") -> "DecodeCounts":
        return DecodeCounts(
            *(getattr(self, each.name) - getattr(earlier, each.name) for each in fields(self))
        )

    @property
    def wrongly_computed_prompt_tokens(self) -> int:
        """Prompt tokens beyond one a request."""
        return max(self.computed_prompt_tokens - self.num_requests, 0)

    def faults(self) -> tuple[str, ...]:
        """What makes the answers between two counts those of another method, worst first."""
        found = {
            "prompt tokens beyond the last were computed by the decode server": (
                self.wrongly_computed_prompt_tokens
            ),
            "prompt tokens came from the decode server's own cache": (
                self.locally_cached_prompt_tokens
            ),
            "preemptions made the decode server compute a prompt again": self.num_preemptions,
            "caches were given up by the prefill server before they were read": (
                self.num_late_reads
            ),
        }
        return tuple(f"{number} {what}" for what, number in found.items() if number)


def decode_counts(prefill_urls: Sequence[str], decode_urls: Sequence[str]) -> DecodeCounts:
    """The sums as of now; EngineError if a server does not answer."""
    each = [_counts(read_metrics(url)) for url in decode_urls]
    sums = (sum(getattr(one, field.name) for one in each) for field in fields(DecodeCounts))
    late = sum(_num_late_reads(read_metrics(url)) for url in prefill_urls)
    return replace(DecodeCounts(*sums), num_late_reads=late)


def refuse_faults(counts: DecodeCounts) -> None:
    """InvalidAnswersError if the decode servers prefilled: that is another method than ours."""
    faults = counts.faults()
    if faults:
        raise InvalidAnswersError(
            f"the answers to {counts.num_requests} requests are invalid: {'; '.join(faults)}. "
            "After preemptions, lower serving.max_num_seqs or give the decode server more KV "
            "cache; otherwise ask through the router."
        )


def _counts(scrape: ServerMetrics) -> DecodeCounts:
    return DecodeCounts(
        num_requests=int(scrape.total(_FIRST_TOKENS)),
        computed_prompt_tokens=int(scrape.total(_BY_SOURCE, source="local_compute")),
        locally_cached_prompt_tokens=int(scrape.total(_BY_SOURCE, source="local_cache_hit")),
        received_prompt_tokens=int(scrape.total(_BY_SOURCE, source="external_kv_transfer")),
        num_preemptions=int(scrape.total("vllm:num_preemptions_total")),
        num_late_reads=0,
    )


def _num_late_reads(scrape: ServerMetrics) -> int:
    return int(scrape.total(_LATE_READS if scrape.has(_LATE_READS) else _EXPIRED))
