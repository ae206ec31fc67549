import os
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest

from slimwise.engine.command import ServerCommand
from slimwise.engine.process import RunningServers, run_server
from slimwise.errors import EngineError

HEALTHY_SERVER = """
import http.server, pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal, time; "
    "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"])
pathlib.Path(sys.argv[2]).write_text(str(child.pid))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


def script(source: str, *arguments: str) -> ServerCommand:
    return ServerCommand((sys.executable, "-c", textwrap.dedent(source), *arguments), {})


def is_running(process: int) -> bool:
    with suppress(FileNotFoundError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def wait_until_gone(process: int) -> None:
    for _ in range(100):
        if not is_running(process):
            return
        time.sleep(0.05)
    raise AssertionError(f"process {process} is still running")


@pytest.fixture
def healthy(unused_tcp_port, tmp_path):
    """A server whose child ignores SIGTERM, its URL, and the file that names the child."""
    child_file = tmp_path / "child"
    command = script(HEALTHY_SERVER, str(unused_tcp_port), str(child_file))
    return command, f"http://127.0.0.1:{unused_tcp_port}", child_file


@pytest.fixture
def unused_tcp_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_a_server_that_dies_is_reported_with_cause_and_last_lines(tmp_path):
    source = """
        print("RuntimeError: the cause")
        for line in range(40): print("line", line)
        raise SystemExit(3)
    """
    with (
        pytest.raises(EngineError, match=r"status 3[\s\S]*RuntimeError: the cause[\s\S]*line 39"),
        run_server(script(source), "http://127.0.0.1:9", tmp_path / "log", start_timeout_s=30),
    ):
        pytest.fail("the block must not run")
    assert (tmp_path / "log").read_text().startswith("RuntimeError: the cause\nline 0\n")


def test_the_cause_is_what_was_refused_and_nothing_that_a_warning_quotes(tmp_path):
    source = """
        print("(APIServer) WARNING 11-30 limits can cause errors like `OSError: [Errno 24] files`.")
        print("  pydantic_core.ValidationError: 1 validation error for ModelConfig")
        print("    Value error, max_model_len (4096) is too long")
        for line in range(40): print("line", line)
        raise SystemExit(1)
    """
    with (
        pytest.raises(EngineError, match=r"ValidationError: 1 [^\n]*\n  Value error, ") as failure,
        run_server(script(source), "http://127.0.0.1:9", tmp_path / "log", start_timeout_s=30),
    ):
        pytest.fail("the block must not run")
    assert "OSError" not in str(failure.value)


def test_a_server_that_never_answers_times_out_and_is_killed(tmp_path):
    source = f"import os, time; open({str(tmp_path / 'id')!r}, 'w').write(str(os.getpid())); " + (
        "print('still loading', flush=True); time.sleep(600)"
    )
    with (
        pytest.raises(EngineError, match=r"not healthy after 1 s[\s\S]*still loading"),
        run_server(script(source), "http://127.0.0.1:9", tmp_path / "log", start_timeout_s=1),
    ):
        pytest.fail("the block must not run")
    assert not is_running(int((tmp_path / "id").read_text()))


def fail_inside(server, failure: BaseException) -> None:
    with server:
        raise failure


def test_the_whole_group_ends_with_the_block(healthy, tmp_path):
    command, url, child_file = healthy
    with run_server(command, url, tmp_path / "log", start_timeout_s=30):
        child = int(child_file.read_text())
        assert is_running(child)
    wait_until_gone(child)


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), ValueError()])
def test_the_whole_group_ends_with_a_failing_block(healthy, tmp_path, failure):
    command, url, child_file = healthy
    with pytest.raises(type(failure)):
        fail_inside(run_server(command, url, tmp_path / "log", start_timeout_s=30), failure)
    wait_until_gone(int(child_file.read_text()))


def lose_the_server(server, child_file: Path) -> None:
    with server:
        leader = int(Path(f"/proc/{child_file.read_text()}/stat").read_text().split()[3])
        os.kill(leader, 9)
        time.sleep(0.2)
        raise EngineError("connection lost.")


def test_a_server_that_dies_during_the_block_explains_the_failure(healthy, tmp_path):
    command, url, child_file = healthy
    server = run_server(command, url, tmp_path / "log", start_timeout_s=30)
    with pytest.raises(EngineError, match=r"connection lost[\s\S]*status -9"):
        lose_the_server(server, child_file)


def test_servers_elsewhere_are_waited_for(healthy, tmp_path):
    command, url, _ = healthy
    with pytest.raises(EngineError, match=f"no server answers at {url} after 0 s"):
        RunningServers().wait_for_others([url], 0)
    with run_server(command, url, tmp_path / "log", start_timeout_s=30):
        RunningServers().wait_for_others([url], 0)


def test_the_server_entry_ends_when_its_parent_is_not_the_one_named():
    entry = [sys.executable, "-m", "slimwise_vllm.server", "--parent", "1"]
    outcome = subprocess.run(entry, capture_output=True, text=True, timeout=60, check=False)
    assert outcome.returncode != 0
    assert "process 1, which started this server, has ended" in outcome.stderr
