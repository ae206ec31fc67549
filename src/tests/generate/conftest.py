"""A decoder that needs no engine: it answers every prompt with a boxed 7."""

import json
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from slimwise.artifacts.backbone_record import BackboneRecord, write_backbone_record
from slimwise.core.moe import GateActivation, GateRule, MoEShape
from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.provenance import Provenance

PROVENANCE = Provenance("abc1234", "2026-11-30T07:00:00+00:00", "CPU, 2 cores", {}, "pytest")
ANSWER = "3+4=7\n</think>\n\nThe answer is \\boxed{7}."


class FakeDecoder(ThreadingHTTPServer):
    """Counts what it is asked, and refuses everything after `limit` answers."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), FakeHandler)
        self.asked: Counter[tuple] = Counter()
        self.limit = 10**9
        self.starts = 0
        self.lock = threading.Lock()

    @contextmanager
    def serve(self, model, serving, log, pools):
        """Stands in for slimwise.engine.deployment.serve."""
        self.starts += 1
        self.pools = pools
        yield f"http://127.0.0.1:{self.server_port}"


class FakeHandler(BaseHTTPRequestHandler):
    server: FakeDecoder  # pyright: ignore[reportIncompatibleVariableOverride]

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        mode = body.get("vllm_xargs", {}).get("slimwise_mode")
        key = (body["messages"][0]["content"], body["temperature"], body["seed"], mode)
        with self.server.lock:
            refused = self.server.asked.total() >= self.server.limit
            self.server.asked.update([] if refused else [key])
        self.send_response(400 if refused else 200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        choice = {"message": {"content": ANSWER}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 30, "completion_tokens": 12}
        self.wfile.write(json.dumps({"choices": [choice], "usage": usage}).encode())

    def handle(self):
        with suppress(BrokenPipeError, ConnectionResetError):
            super().handle()

    def log_message(self, format, *args):
        pass


@pytest.fixture
def decoder(monkeypatch):
    server = FakeDecoder()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr("slimwise.generate.run.serve", server.serve)
    yield server
    server.shutdown()
    server.server_close()


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
