import os
from pathlib import Path

import pytest

from slimwise.engine import deployment
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.metrics import read_metrics
from slimwise.engine.proxies import reach_directly
from slimwise.errors import EngineError

from ..played_server import played_server


@pytest.fixture(autouse=True)
def _proxies(monkeypatch):
    """A proxy that is not there, for every host; what a test sets goes with it."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr("urllib.request._opener", None)  # it knows the proxies of its first use
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "")


def test_our_servers_are_reached_past_a_proxy():
    with played_server(lambda asked: (200, "a_total 1\n")) as url:
        with pytest.raises(EngineError, match="Connection refused"):
            read_metrics(url)
        reach_directly()
        assert read_metrics(url).total("a_total") == 1


def test_the_hosts_of_servers_are_reached_past_it_too(monkeypatch):
    def stop() -> None:
        raise EngineError("no server is started")

    monkeypatch.setattr(deployment, "refuse_other_geometry", lambda *_: None)
    monkeypatch.setattr(deployment, "this_host", stop)
    config = ServingConfig(max_model_len_tokens=64, host="10.0.0.3")
    layout = DisaggregationConfig(prefill_urls=("http://10.0.0.1:8100",))
    model = deployment.ServedModel(Path("model"))
    with pytest.raises(EngineError, match="no server is started"):
        deployment.serve_disaggregated(model, model, config, layout, Path("logs")).__enter__()
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"] == "10.0.0.3,10.0.0.1"


@pytest.mark.parametrize(
    ("given", "told"), [("a.example,localhost", "a.example,localhost,127.0.0.1"), ("*", "*")]
)
def test_hosts_that_were_excepted_still_are(monkeypatch, given, told):
    monkeypatch.setenv("NO_PROXY", given)
    reach_directly()
    assert {os.environ[name] for name in ("no_proxy", "NO_PROXY")} - {""} == {told}
