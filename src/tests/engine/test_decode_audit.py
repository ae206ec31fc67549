import pytest
from prometheus_client.parser import text_string_to_metric_families

from slimwise.engine import decode_audit
from slimwise.engine.decode_audit import DecodeCounts, decode_counts, refuse_faults
from slimwise.engine.metrics import ServerMetrics
from slimwise.errors import InvalidAnswersError

SCRAPE = """
# TYPE vllm:prompt_tokens_by_source counter
vllm:prompt_tokens_by_source_total{engine="0",source="local_compute"} 3.0
vllm:prompt_tokens_by_source_total{engine="0",source="local_cache_hit"} 4.0
vllm:prompt_tokens_by_source_total{engine="0",source="external_kv_transfer"} 50.0
# TYPE vllm:num_preemptions counter
vllm:num_preemptions_total{engine="0"} 1.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 3.0
vllm:time_to_first_token_seconds_count{engine="0"} 3.0
vllm:time_to_first_token_seconds_sum{engine="0"} 0.5
# TYPE vllm:nixl_num_kv_expired_reqs counter
vllm:nixl_num_kv_expired_reqs_total{engine="0"} 5.0
"""
LATE = """# TYPE vllm:nixl_num_notifications_after_expiry counter
vllm:nixl_num_notifications_after_expiry_total{engine="0"} 2.0
"""
CLEAN = DecodeCounts(10, 10, 0, 500, 0, 0)


@pytest.fixture
def scrapes(monkeypatch):
    """The metrics of each address, which a test may change."""
    texts = {"a": SCRAPE, "b": SCRAPE}

    def read(url: str) -> ServerMetrics:
        families = text_string_to_metric_families(texts[url])
        return ServerMetrics(url, tuple(each for family in families for each in family.samples))

    monkeypatch.setattr(decode_audit, "read_metrics", read)
    return texts


def test_counts_are_sums_over_the_decode_servers(scrapes):
    assert decode_counts([], ["a", "b"]) == DecodeCounts(6, 6, 8, 100, 2, 0)


def test_late_reads_are_those_of_the_prefill_servers_where_they_tell_them_apart(scrapes):
    assert decode_counts(["a"], ["b"]).num_late_reads == 5
    scrapes["a"] += LATE
    assert decode_counts(["a"], ["b"]).num_late_reads == 2


def test_a_run_that_computed_no_more_than_last_tokens_is_valid():
    refuse_faults(CLEAN)
    refuse_faults(DecodeCounts(10, 0, 0, 510, 0, 0))


@pytest.mark.parametrize(
    ("counts", "fault"),
    [
        (DecodeCounts(10, 59, 0, 451, 0, 0), "49 prompt tokens beyond the last were computed"),
        (DecodeCounts(10, 10, 16, 484, 0, 0), "16 prompt tokens came from the decode server's own"),
        (DecodeCounts(10, 10, 0, 500, 2, 0), "2 preemptions made the decode server"),
        (DecodeCounts(10, 10, 0, 500, 0, 3), "3 caches were given up by the prefill server"),
    ],
)
def test_a_run_in_which_the_decoder_prefilled_is_invalid(counts, fault):
    with pytest.raises(InvalidAnswersError, match=f"answers to 10 requests are invalid: {fault}"):
        refuse_faults(counts)


def test_only_what_happened_in_between_counts():
    earlier = DecodeCounts(5, 80, 16, 200, 3, 0)
    later = DecodeCounts(15, 90, 16, 700, 3, 0)
    assert later - earlier == CLEAN
