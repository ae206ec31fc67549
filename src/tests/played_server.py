"""An HTTP server that answers what a test says."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Asked:
    """One request; its body is JSON, or None of one that only gets."""

    path: str
    headers: Mapping[str, str]
    body: Any = None


@contextmanager
def played_server(reply: Callable[[Asked], tuple[int, str]]) -> Iterator[str]:
    """The address of a server whose replies, status and text, come from threads of this process."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            status, text = reply(Asked(self.path, dict(self.headers), body))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(text.encode())

        def handle(self) -> None:
            with suppress(BrokenPipeError, ConnectionResetError):  # the client did not wait
                super().handle()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
