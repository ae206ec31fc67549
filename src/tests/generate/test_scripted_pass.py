"""Passes over whole benchmarks against a server that fails, is killed and comes back."""

import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from slimwise.artifacts.samples import read_samples
from slimwise.backbones.base import ChatParsers
from slimwise.benchmarks.base import BenchmarkItem
from slimwise.benchmarks.registry import BENCHMARKS, benchmark_named
from slimwise.core.vocabulary import DecoderId
from slimwise.engine.config import ServingConfig
from slimwise.errors import EngineError
from slimwise.generate.config import EvaluationConfig
from slimwise.generate.run import run

pytestmark = pytest.mark.slow
NAMES = tuple(name for name in BENCHMARKS if name.startswith(("mini_", "bfcl_")))
CONFIG = EvaluationConfig(benchmarks=NAMES, num_items=15, sampled_runs=2, concurrency=64)
NUM_ANSWERS = len(NAMES) * CONFIG.num_items * 3
SERVING = ServingConfig(max_model_len_tokens=65536, outage_timeout_s=30)
SERVER = Path(__file__).with_name("scripted_server.py")
KEY = ["benchmark", "item_id", "decoding", "run"]


def answer_to(item: BenchmarkItem) -> dict[str, Any]:
    """A message of the chat API that only this item gets."""
    message: dict[str, Any] = {"reasoning": f"thought on {item.item_id}", "content": None}
    if not item.native_calls:
        return message | {"content": f"answer to {item.messages[-1]['content']}"}
    function = {"name": "f", "arguments": json.dumps({"item": item.item_id})}
    return message | {"tool_calls": [{"id": "0", "type": "function", "function": function}]}


class ScriptedServer:
    """The process, its script and what it has sent."""

    def __init__(self, folder: Path) -> None:
        self._script, self._log = folder / "script.json", folder / "sent.log"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.items = {
            (name, item.item_id): item
            for name in NAMES
            for item in benchmark_named(name).items(CONFIG.num_items)
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, failing: float = 0.0, dropped: float = 0.0, unforeseen: str = "") -> None:
        prompts = [
            {"messages": item.messages, "tools": item.tools, "answer": answer_to(item)}
            for item in self.items.values()
            if item.item_id != unforeseen
        ]
        script = {"prompts": prompts, "failing_share": failing, "dropped_share": dropped}
        self._script.write_text(json.dumps(script))
        arguments = [str(self.port), str(self._script), str(self._log)]
        self._process = subprocess.Popen([sys.executable, str(SERVER), *arguments])

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def sent(self) -> Counter[str]:
        """How often each answer left whole."""
        return Counter(self._log.read_text().splitlines() if self._log.exists() else [])

    def wait_for(self, num_sent: int) -> None:
        while self.sent().total() < num_sent:
            time.sleep(0.01)


@pytest.fixture
def server(tmp_path, monkeypatch):
    scripted = ScriptedServer(tmp_path)

    @contextmanager
    def serve(model, serving, log, pools):
        yield scripted.url

    monkeypatch.setattr("slimwise.generate.run.serve", serve)
    monkeypatch.setattr(
        "slimwise.generate.run.model_parsers", lambda model: ChatParsers("qwen3", "qwen3_coder")
    )
    yield scripted
    scripted.kill()


@pytest.fixture
def generate(tmp_path, backbone):
    def run_stage(serving: ServingConfig = SERVING) -> None:
        run(
            CONFIG,
            serving=serving,
            backbone=backbone,
            decoder=DecoderId(),
            out=tmp_path / "samples.parquet",
            work=tmp_path / "work",
        )

    return run_stage


@pytest.fixture
def check(tmp_path, server):
    """Every answer is there once, whole, and is the one to its item; gives the samples."""

    def check_samples():
        samples = read_samples(tmp_path / "samples.parquet")
        assert len(samples) == NUM_ANSWERS
        assert not samples.duplicated(KEY).any()
        for row in samples.to_dict("records"):
            expected = answer_to(server.items[row["benchmark"], row["item_id"]])
            calls = [call["function"] for call in expected.get("tool_calls", ())]
            assert row["reasoning"] == expected["reasoning"]
            assert row["content"] == (expected["content"] or "")
            assert json.loads(row["tool_calls"]) == calls
        return samples

    return check_samples


def test_failures_and_cut_replies_lose_nothing_and_repeat_nothing(server, generate, check):
    server.start(failing=0.2, dropped=0.2)
    generate()
    samples = check()
    chance = samples["seed"] % 1000 / 1000
    assert samples[chance >= 0.4]["attempts"].eq(1).all()
    assert samples[chance < 0.2]["attempts"].eq(2).all()
    assert samples["thought_split"].all()
    assert set(server.sent().values()) == {1}
    assert server.sent().total() == NUM_ANSWERS


def test_a_server_that_is_killed_and_comes_back_is_waited_for(server, generate, check):
    server.start()

    def interrupt() -> None:
        server.wait_for(NUM_ANSWERS // 3)
        server.kill()
        time.sleep(1.0)
        server.start()

    interruption = threading.Thread(target=interrupt)
    interruption.start()
    generate()
    interruption.join()
    assert check()["attempts"].max() == 2
    assert server.sent().total() <= NUM_ANSWERS + CONFIG.concurrency


def test_a_server_that_stays_away_loses_nothing(server, generate, check):
    server.start()
    killer = threading.Thread(target=lambda: (server.wait_for(NUM_ANSWERS // 3), server.kill()))
    killer.start()
    with pytest.raises(EngineError, match=r"gone for 1 s.*serving\.outage_timeout_s"):
        generate(SERVING.model_copy(update={"outage_timeout_s": 1}))
    killer.join()
    server.start()
    generate()
    check()
    assert server.sent().total() <= NUM_ANSWERS + CONFIG.concurrency


def test_a_refusal_ends_the_run_and_keeps_what_was_on_its_way(server, generate, check):
    server.start(unforeseen="live_simple_0-0-0")
    with pytest.raises(EngineError, match="status 400: this prompt was not foreseen"):
        generate()
    num_sent = server.sent().total()
    assert num_sent < NUM_ANSWERS
    server.kill()
    server.start()
    generate()
    check()
    assert set(server.sent().values()) == {1}


CLIENT = """
import sys
from contextlib import nullcontext
from pathlib import Path
from slimwise.backbones.base import ChatParsers
from slimwise.core.vocabulary import DecoderId
from slimwise.engine.config import ServingConfig
from slimwise.generate import run as stage
from slimwise.generate.config import EvaluationConfig
config, serving, url, backbone, out, work = sys.argv[1:]
stage.serve = lambda *_: nullcontext(url)
stage.model_parsers = lambda _: ChatParsers("qwen3", "qwen3_coder")
stage.run(
    EvaluationConfig.model_validate_json(config),
    serving=ServingConfig.model_validate_json(serving),
    backbone=Path(backbone),
    decoder=DecoderId(),
    out=Path(out),
    work=Path(work),
)
"""


def test_a_killed_client_resumes_where_its_log_ends(server, generate, check, backbone, tmp_path):
    server.start()
    words = (CONFIG.model_dump_json(), SERVING.model_dump_json(), server.url, backbone)
    paths = (tmp_path / "samples.parquet", tmp_path / "work")
    client = subprocess.Popen([sys.executable, "-c", CLIENT, *map(str, (*words, *paths))])
    server.wait_for(NUM_ANSWERS // 3)
    client.send_signal(signal.SIGKILL)
    client.wait()
    generate()
    check()
    assert server.sent().total() <= NUM_ANSWERS + CONFIG.concurrency
