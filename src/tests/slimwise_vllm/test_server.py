"""Over HTTP, with the miniature backbone: arguments, the default mode, coverage, bad keep sets."""

import json
import socket
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import slimwise
from slimwise.artifacts.checkpoint_digest import checkpoint_digest
from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion
from slimwise.engine.api_key import API_KEY_VARIABLE
from slimwise.engine.command import ServerCommand
from slimwise.engine.process import run_server
from slimwise.errors import EngineError
from slimwise.provenance import Provenance

pytestmark = pytest.mark.slow

_KEY = "a key"
BACKBONE = Path(slimwise.__file__).parent / "backbones" / "mini" / "checkpoint"


@pytest.fixture(scope="module")
def keep_set(tmp_path_factory):
    """Experts 0, 2, 4.. of every layer of the miniature."""
    config = json.loads((BACKBONE / "config.json").read_text())
    text = config.get("text_config", config)
    kept = (tuple(range(0, text["num_experts"], 2)),) * text["num_hidden_layers"]
    path = tmp_path_factory.mktemp("keep_set") / "even.json"
    record = KeepSetRecord(
        KeepSet(kept, text["num_experts"], text["num_experts_per_tok"]),
        Criterion.REAP,
        checkpoint_digest(BACKBONE),
        config["model_type"],
    )
    write_keep_set(path, record, Provenance("", "", "", {}, ""))
    return path


@contextmanager
def running(log: Path, **settings):
    """The base URL of a server of the miniature with these settings of the plugin."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    arguments = {
        "--model": BACKBONE,
        "--served-model-name": "mini",
        "--port": port,
        "--max-model-len": 128,
        "--max-num-seqs": 8,
        "--kv-cache-memory-bytes": 1 << 27,
        "--distributed-executor-backend": "uni",
        "--additional-config": json.dumps({"slimwise": settings}),
    }
    flags = [str(word) for pair in arguments.items() for word in pair]
    command = ServerCommand(
        (sys.executable, "-m", "slimwise_vllm.server", "--enforce-eager", *flags),
        {
            "TORCHDYNAMO_DISABLE": "1",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
            API_KEY_VARIABLE: _KEY,
        },
    )
    url = f"http://127.0.0.1:{port}"
    with run_server(command, url, log, start_timeout_s=120):
        yield url


@pytest.fixture(scope="module")
def server(tmp_path_factory, keep_set):
    folder = tmp_path_factory.mktemp("server")
    settings = {
        "pools": {"even": str(keep_set)},
        "check_routing": True,
        "coverage_file": str(folder / "coverage.json"),
        "coverage_interval_steps": 1,
        "coverage_export_s": 0,
    }
    with running(folder / "log", **settings) as url:
        yield url


def call(url, path, body=None, method=None, key=_KEY) -> tuple[int, Any]:
    """Status and JSON (or text) of a reply, refusals included."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = urllib.request.Request(url + path, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            status, text = reply.status, reply.read().decode()
    except urllib.error.HTTPError as refusal:
        status, text = refusal.code, refusal.read().decode()
    return status, json.loads(text) if text.startswith("{") else text


def answer(url, **arguments):
    body = {
        "model": "mini",
        "messages": [{"role": "user", "content": "What is 17 + 25?"}],
        "max_tokens": 24,
        "temperature": 0,
        "vllm_xargs": arguments,
    }
    status, reply = call(url, "/v1/chat/completions", body)
    return reply["choices"][0]["message"]["content"] if status == 200 else (status, reply)


def test_each_request_names_its_mode(server):
    answers = {mode: answer(server, slimwise_mode=mode) for mode in ("full", "slimwise", "pruned")}
    assert len(set(answers.values())) == 3
    assert answer(server) == answers["full"]
    assert answer(server, slimwise_decode_pool="even") == answers["slimwise"]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"slimwise_mode": "fast"}, "mode 'fast' does not exist"),
        ({"slimwise_mode": "pruned", "slimwise_pool": "odd"}, "pool 'odd' does not exist"),
        ({"slimwise_mod": "full"}, "slimwise_mod is not an argument"),
    ],
)
def test_a_wrong_name_is_a_clear_client_error_and_the_server_stays_up(server, arguments, fault):
    status, reply = answer(server, **arguments)
    assert status == 400
    assert fault in json.dumps(reply)
    assert isinstance(answer(server), str)


def test_beam_search_is_refused_by_name_and_the_server_stays_up(server):
    body = {
        "model": "mini",
        "messages": [{"role": "user", "content": "What is 17 + 25?"}],
        "max_tokens": 2,
        "use_beam_search": True,
        "n": 2,
    }
    status, reply = call(server, "/v1/chat/completions", body)
    assert status == 400
    assert "do not support beam search" in json.dumps(reply)
    assert isinstance(answer(server), str)


def test_the_default_mode_changes_without_a_restart(server):
    full, slimwise = (answer(server, slimwise_mode=mode) for mode in ("full", "slimwise"))
    assert call(server, "/slimwise/default_mode") == (
        200,
        {"mode": "full", "pool": "even", "pools": ["full", "even"]},
    )
    changed = call(server, "/slimwise/default_mode", {"mode": "slimwise"}, "PUT")
    assert changed == (200, {"mode": "slimwise", "pool": "even"})
    assert answer(server) == slimwise
    status, reply = call(server, "/slimwise/default_mode", {"mode": "fast"}, "PUT")
    assert status == 400
    assert "choose one of full, pruned, slimwise, reverse" in json.dumps(reply)
    assert answer(server) == slimwise
    call(server, "/slimwise/default_mode", {"mode": "full"}, "PUT")
    assert answer(server) == full


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/v1/chat/completions", "POST"),
        ("/invocations", "POST"),
        ("/generative_scoring", "POST"),
        ("/tokenize", "POST"),
        ("/openapi.json", "GET"),
        ("/health/../invocations", "POST"),
        ("/slimwise/default_mode", "PUT"),
        ("/slimwise/default_mode", "GET"),
        ("/slimwise/coverage", "GET"),
    ],
)
def test_without_the_key_nothing_is_answered_or_changed(server, path, method):
    for key in ("", "another key", "a keys"):
        status, _ = call(server, path, {"mode": "slimwise"}, method, key)
        assert status == 401
    assert call(server, "/slimwise/default_mode")[1]["mode"] == "full"


@pytest.mark.parametrize("path", ["/health", "/ping", "/version", "/metrics"])
def test_without_the_key_the_server_tells_how_it_is(server, path):
    assert call(server, path, key="")[0] == 200


def test_nobody_outside_this_host_is_listened_to(server):
    port = server.rpartition(":")[2]
    listening = [
        fields[1]
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        for fields in map(str.split, Path(table).read_text().splitlines()[1:])
        if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == int(port)
    ]
    assert listening == [f"0100007F:{int(port):04X}"]


def test_coverage_is_served_and_shown_beside_the_metrics_of_vllm(server):
    answer(server, slimwise_mode="slimwise")
    status, report = call(server, "/slimwise/coverage")
    assert status == 200
    (alone,) = [row for row in report["steps"] if (row["phase"], row["batch"]) == ("decode", 1)]
    assert alone["pool_share"] == report["top_k"] / report["num_experts"]
    answer(server)
    _, metrics = call(server, "/metrics")
    assert 'slimwise:pool_share{phase="decode"} 0.0625' in metrics
    assert "vllm:generation_tokens_total" in metrics


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{}", "has schema None, expected 'slimwise.keep_set/1'"),
        (None, "cannot read"),
    ],
)
def test_a_bad_keep_set_file_stops_the_start_with_its_name(tmp_path, content, fault):
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_text(content)
    with (
        pytest.raises(EngineError, match=rf"bad\.json[\s\S]*{fault}|{fault}[\s\S]*bad\.json"),
        running(tmp_path / "log", pools={"even": str(path)}),
    ):
        pytest.fail("the server must not start")
