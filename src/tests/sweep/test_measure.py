"""A deployment that runs already, played by one thread, under a benchmark that only waits."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from slimwise.core.vocabulary import Routing, ServingMode
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.deployment import ServedModel
from slimwise.errors import EngineError
from slimwise.sweep import measure as measuring
from slimwise.sweep.bench import Load
from slimwise.sweep.config import LoadConfig
from slimwise.sweep.deployments import Swept, SweptArm
from slimwise.sweep.measure import Setup, measure
from slimwise.sweep.point_log import PointLog
from slimwise.sweep.points import points

from ..played_server import Asked, played_server

STEP_S = 0.01
LOAD = LoadConfig(concurrency=(2, 4), prefill_requests=0, output_tokens=60, prompt_tokens=10)
_METRICS = """# TYPE vllm:num_requests_running gauge
vllm:num_requests_running {running}
# TYPE vllm:generation_tokens counter
vllm:generation_tokens_total {generated}
# TYPE vllm:prompt_tokens counter
vllm:prompt_tokens_total 10
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_count {first_tokens}
# TYPE vllm:request_success counter
vllm:request_success_total 5
# TYPE vllm:num_preemptions counter
vllm:num_preemptions_total 0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc 0.25
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{{block_size="16",num_gpu_blocks="100",kv_cache_size_tokens="1600"}} 1
"""


class _Decoder:
    """A server whose every running request gets a token in each step."""

    def __init__(self) -> None:
        self.running, self.generated, self.since = 0, 0.0, time.monotonic()

    def run(self, requests: int) -> None:
        now = time.monotonic()
        self.generated += self.running * (now - self.since) / STEP_S
        self.running, self.since = requests, now

    def metrics(self) -> str:
        self.run(self.running)
        return _METRICS.format(
            running=self.running, generated=self.generated, first_tokens=5 + self.running
        )


class _Bench:
    """Lets the decoder run for as long as the answers would take; dies at a concurrency."""

    def __init__(self, decoder: _Decoder, dies_at: int | None) -> None:
        self.decoder, self.dies_at = decoder, dies_at
        self.measured: list[int] = []

    def measure(self, load: Load, *, base_url: str, tokenizer: Path) -> dict[str, float]:
        if load.concurrency == self.dies_at:
            raise EngineError("the server has gone")
        self.measured.append(load.concurrency)
        self.decoder.run(load.concurrency)
        time.sleep(load.output_tokens * STEP_S)
        self.decoder.run(0)
        names = ("output_throughput", "median_ttft_ms", "p99_ttft_ms", "median_tpot_ms")
        return dict.fromkeys((*names, "p99_tpot_ms"), 1.0)


@pytest.fixture
def decoder() -> Iterator[tuple[_Decoder, str]]:
    """The server and its address."""
    played = _Decoder()

    def reply(asked: Asked) -> tuple[int, str]:
        is_metrics = asked.path == "/metrics"
        return 200, played.metrics() if is_metrics else json.dumps({"version": "0.32.0"})

    with played_server(reply) as url:
        yield played, url


SWEPT = Swept(
    "full",
    "mini",
    Routing.REAL,
    ServedModel(Path("/models/mini")),
    decode=None,
    tokenizer=Path("/models/mini"),
    arms=(SweptArm(ServingMode.FULL, None, 64),),
)


@pytest.fixture
def run(decoder, monkeypatch, tmp_path):
    """Measures all points into one file, and says which were asked."""
    played, url = decoder

    def measured(
        dies_at: int | None = None, load: LoadConfig = LOAD, endpoint: str = url
    ) -> list[int]:
        bench = _Bench(played, dies_at)

        @contextmanager
        def running_bench(log: Path, timeout_s: float) -> Iterator[_Bench]:
            yield bench

        monkeypatch.setattr(measuring, "running_bench", running_bench)
        serving = ServingConfig(max_model_len_tokens=128)
        setup = Setup(serving, DisaggregationConfig(), tmp_path, endpoint)
        wanted = list(points(load, SWEPT, "identity"))
        measure(wanted, SWEPT, setup, PointLog(tmp_path / "rows.jsonl"))
        return bench.measured

    return measured


def _rows(tmp_path: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]


def test_a_row_has_the_rates_of_the_server(run, tmp_path):
    assert run() == [2, 4]
    for row, batch in zip(_rows(tmp_path), (2, 4), strict=True):
        assert row["batch_offered"] == row["batch_running"] == batch
        assert row["step_ms"] == pytest.approx(10, rel=0.1)
        assert row["tokens_per_s_per_user"] == pytest.approx(100, rel=0.1)
        assert row["tokens_per_s_per_gpu"] == pytest.approx(100 * batch, rel=0.1)
        assert row["context_tokens"] == 40
        assert (row["kv_cache_tokens"], row["kv_cache_share"]) == (1600, 0.25)
        assert (row["vllm"], row["kernels"], row["faults"]) == ("0.32.0", "unknown", "")


def test_a_sweep_that_fails_goes_on_where_it_failed(run, tmp_path):
    with pytest.raises(EngineError, match="has gone"):
        run(dies_at=4)
    assert len(_rows(tmp_path)) == 1
    assert run() == [4]
    assert run() == []
    assert [row["batch_offered"] for row in _rows(tmp_path)] == [2, 4]


def test_an_endpoint_where_nothing_answers_is_refused(run):
    with pytest.raises(EngineError, match="metrics cannot be read"):
        run(endpoint="http://127.0.0.1:9")


def test_answers_that_are_over_too_soon_are_asked_for_again(run, tmp_path):
    short = LOAD.model_copy(update={"concurrency": (2,), "output_tokens": 10})
    asked = run(load=short)
    (row,) = _rows(tmp_path)
    assert row["output_tokens"] == 10 * 2 ** (len(asked) - 1) > 10
    assert row["context_tokens"] == 10 + row["output_tokens"] / 2
    assert run(load=short) == []


def test_answers_longer_than_the_model_are_not_asked_for(run):
    with pytest.raises(EngineError, match=r"serving\.max_model_len_tokens"):
        run(load=LOAD.model_copy(update={"output_tokens": 1, "prompt_tokens": 127}))
