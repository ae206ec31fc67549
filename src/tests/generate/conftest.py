"""A decoder that needs no engine: it answers every prompt with a boxed 7."""

import json
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from slimwise.artifacts.backbone_record import BackboneRecord, write_backbone_record
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.provenance import Provenance

from ..played_server import Asked, played_server

PROVENANCE = Provenance("abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores", {}, "pytest")
ANSWER = "3+4=7\n</think>\n\nThe answer is \\boxed{7}."


class FakeDecoder:
    """Counts what it is asked, and refuses everything after `limit` answers."""

    def __init__(self) -> None:
        self.asked: Counter[tuple] = Counter()
        self.limit = 10**9
        self.starts = 0
        self.url = ""
        self._lock = threading.Lock()

    def reply(self, asked: Asked) -> tuple[int, str]:
        body = asked.body
        mode = body.get("vllm_xargs", {}).get("slimwise_mode")
        key = (body["messages"][0]["content"], body["temperature"], body["seed"], mode)
        with self._lock:
            if self.asked.total() >= self.limit:
                return 400, ""
            self.asked[key] += 1
        choice = {"message": {"content": ANSWER}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 30, "completion_tokens": 12}
        return 200, json.dumps({"choices": [choice], "usage": usage})

    @contextmanager
    def serve(self, model, serving, log, pools):
        """Stands in for slimwise.engine.deployment.serve."""
        self.starts += 1
        self.pools = pools
        yield self.url


@pytest.fixture
def decoder(monkeypatch):
    decoder = FakeDecoder()
    monkeypatch.setattr("slimwise.generate.run.serve", decoder.serve)
    with played_server(decoder.reply) as decoder.url:
        yield decoder


@pytest.fixture
def backbone(tmp_path) -> Path:
    """The record of the embedded checkpoint."""
    return write_record(tmp_path / "backbone.json", EMBEDDED_CHECKPOINT)


def write_record(path: Path, model: Path) -> Path:
    shape = MoEShape(
        num_layers=8,
        num_experts=64,
        top_k=4,
        hidden_size=192,
        expert_width=32,
        shared_expert_width=64,
    )
    rule = GateRule(GateActivation.SOFTMAX, renormalised=True)
    record = BackboneRecord(
        "mini", model, "qwen3_5_moe_text", "Mini", shape, rule, "bfloat16", "0" * 64
    )
    write_backbone_record(path, record, PROVENANCE)
    return path
