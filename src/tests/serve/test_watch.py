"""What `slimwise serve` does while it serves, with a deployment of no servers."""

from contextlib import nullcontext
from pathlib import Path

import pytest

from slimwise.core.vocabulary import Deployment, ServingMode
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.decode_audit import DecodeCounts
from slimwise.engine.deployment import RunningDeployment
from slimwise.engine.process import RunningServers
from slimwise.errors import EngineError
from slimwise.serve import run as stage
from slimwise.serve.plan import Served


def test_a_server_that_tells_no_counts_is_warned_of_and_serving_goes_on(
    tmp_path, monkeypatch, caplog
):
    failure = EngineError("http://prefill/metrics cannot be read: timed out.")
    scrapes = iter(
        [
            DecodeCounts(1, 0, 0, 9, 0, 0),
            failure,
            failure,
            DecodeCounts(2, 5, 0, 9, 0, 0),
            KeyboardInterrupt(),
        ]
    )

    def decode_counts(*_: object) -> DecodeCounts:
        found = next(scrapes)
        if isinstance(found, DecodeCounts):
            return found
        raise found

    running = RunningDeployment("http://router", ("p",), ("d",), (), RunningServers())
    monkeypatch.setattr(stage, "_deployment", lambda *_: nullcontext(running))
    monkeypatch.setattr(stage, "decode_counts", decode_counts)
    monkeypatch.setattr(stage, "_POLL_S", 0)
    with pytest.raises(KeyboardInterrupt):
        stage.run(
            Served(Path("m"), ServingMode.FULL, Deployment.DISAGGREGATED),
            serving=ServingConfig(max_model_len_tokens=64),
            layout=DisaggregationConfig(),
            logs=tmp_path,
            on_ready=lambda _: None,
        )
    first, second = caplog.messages
    assert "cannot be read: timed out" in first
    assert second.startswith("3 prompt tokens beyond the last")
