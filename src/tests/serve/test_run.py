"""`slimwise serve` as a practitioner runs it, and what is left of it afterwards."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from slimwise.paths import EMBEDDED_CHECKPOINT

pytestmark = [pytest.mark.slow, pytest.mark.proof]


@contextmanager
def serving(logs: Path, *words: str):
    """A disaggregated deployment of the miniature, and the address that it printed."""
    settings = {"cpu_threads": 1, "kv_cache_gib": 0.125, "max_num_seqs": 8}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "slimwise.cli", "serve", str(EMBEDDED_CHECKPOINT)),
            *("--mode", "full", "--deployment", "disaggregated", "--port", "0"),
            *("--max-model-len", "128", "--serving", json.dumps(settings), "--logs", str(logs)),
            *words,
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        yield process, process.stdout.readline().split()[0]
    finally:
        process.kill()
        process.wait()


def descendants(process: int) -> set[int]:
    children_file = Path(f"/proc/{process}/task/{process}/children")
    children = {int(child) for child in children_file.read_text().split()}
    return children.union(*(descendants(child) for child in children))


def wait_until_gone(members: set[int]) -> None:
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{member}").exists() for member in members):
        assert time.monotonic() < deadline, "part of the deployment is left"
        time.sleep(0.1)


def test_it_answers_at_the_printed_address_and_leaves_nothing_behind(tmp_path):
    with serving(tmp_path) as (process, address):
        assert answered(address)["usage"]["completion_tokens"] == 4
        members = descendants(process.pid)
        assert len(members) >= 5  # two servers, an engine each, and the router
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    wait_until_gone(members)
    logs = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.log")}
    assert logs == {"prefill/server.log", "decode/server.log", "router.log"}


def test_phases_that_were_started_apart_answer_as_one_deployment(tmp_path):
    """Three commands, as on three hosts; the router's knows the addresses of the other two."""
    prefill, decode, router = (tmp_path / name for name in ("prefill", "decode", "router"))
    with (
        serving(prefill, "--phase", "prefill") as (_, prefill_url),
        serving(decode, "--phase", "decode") as (_, decode_url),
    ):
        urls = {"prefill_urls": prefill_url, "decode_urls": decode_url}
        layout = {name: [url.removesuffix("/v1")] for name, url in urls.items()}
        with serving(router, "--disaggregation", json.dumps(layout)) as (process, address):
            apart = answered(address)
            assert "vllm::router" in "".join(map(command_line, descendants(process.pid)))
        assert not list(router.glob("*/server.log"))
    with serving(tmp_path / "together") as (_, address):
        assert answered(address)["choices"] == apart["choices"]


def test_a_killed_one_takes_everything_along(tmp_path):
    with serving(tmp_path) as (process, _):
        members = descendants(process.pid)
        process.kill()
        process.wait()
    wait_until_gone(members)


def test_it_ends_when_a_server_does(tmp_path):
    with serving(tmp_path) as (process, _):
        members = descendants(process.pid)
        (router,) = [each for each in members if "vllm::router" in command_line(each)]
        os.kill(router, signal.SIGKILL)
        assert process.wait(60) == 2
    wait_until_gone(members)


def answered(address: str) -> dict[str, Any]:
    """Four tokens, the most probable ones."""
    body = {"model": "decoder", "prompt": "17 + 25", "max_tokens": 4, "ignore_eos": True}
    request = urllib.request.Request(
        f"{address}/completions",
        json.dumps(body | {"temperature": 0}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def command_line(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text()
