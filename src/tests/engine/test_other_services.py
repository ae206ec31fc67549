"""An address at which something else than a server of ours answers."""

import socketserver
import threading

import pytest

from slimwise.engine.api_key import refuse_other_keys
from slimwise.engine.metrics import read_metrics
from slimwise.engine.process import RunningServers
from slimwise.errors import EngineError

from ..played_server import played_server


@pytest.fixture
def another():
    """The address of a service that does not speak HTTP."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.wfile.write(b"SSH-2.0-OpenSSH\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_what_does_not_speak_http_is_named(another):
    for ask in (
        lambda: read_metrics(another),
        lambda: refuse_other_keys([another]),
        lambda: RunningServers().wait_for_others([another], timeout_s=0),
    ):
        with pytest.raises(EngineError, match=another):
            ask()


def test_a_page_that_holds_no_metrics_is_named():
    page = played_server(lambda _: (200, "<html> not found </html>"))
    with page as url, pytest.raises(EngineError, match=f"{url}/metrics cannot be read"):
        read_metrics(url)
