"""A headless Chromium, spoken to by the DevTools protocol over two pipes."""

import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
_COMPLAINTS = ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled")
_KEY_CODES = {"Enter": 13, "Escape": 27}
# The program reads messages from file 3 and writes to file 4, a zero byte after each.
_REDIRECTED = 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"'


@dataclass
class Tab:
    """A page in the browser, and what it complained about."""

    commands: int
    replies: Any
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of a method; events that come first are looked through for complaints."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            reply = self._next()
            if reply.get("id") == number:
                assert "error" not in reply, reply["error"]
                return reply["result"]

    def open(self, path: Path, *, width_px: int, scheme: str = "light") -> None:
        """Show the file in a window of the width, in a light or dark scheme."""
        self.complaints.clear()
        phone = width_px < 600
        size = {"width": width_px, "height": 800, "deviceScaleFactor": 1 + phone, "mobile": phone}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=path.resolve().as_uri())
        while self.run("document.readyState") != "complete":
            time.sleep(0.01)

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        outcome = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in outcome, outcome["exceptionDetails"]
        return outcome["result"].get("value")

    def press(self, key: str, text: str = "") -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            words = {"type": kind, "key": key, "windowsVirtualKeyCode": _KEY_CODES[key]}
            self.call("Input.dispatchKeyEvent", **words, **({"text": text} if text else {}))

    def _next(self) -> dict[str, Any]:
        text = bytearray()
        while (byte := self.replies.read(1)) != b"\0":
            assert byte, "the browser has ended"
            text += byte
        event = json.loads(text)
        if event.get("method") in _COMPLAINTS:
            self.complaints.append(json.dumps(event["params"]))
        return event


@contextmanager
def browser_tab(profile: Path) -> Iterator[Tab]:
    """A tab of a browser of its own, which ends with the block."""
    to_browser, from_browser = os.pipe(), os.pipe()
    # Its sandbox needs a user other than root; the page is our own file.
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"]
    words = [
        str(to_browser[0]),
        str(from_browser[1]),
        PROGRAM,
        *flags,
        f"--user-data-dir={profile}",
    ]
    with (
        subprocess.Popen(
            ["bash", "-c", _REDIRECTED, *words],
            pass_fds=(to_browser[0], from_browser[1]),
            stderr=subprocess.DEVNULL,
        ) as program,
        open(from_browser[0], "rb") as replies,
    ):
        os.close(to_browser[0])
        os.close(from_browser[1])
        try:
            tab = Tab(to_browser[1], replies)
            target = tab.call("Target.createTarget", url="about:blank")["targetId"]
            attached = tab.call("Target.attachToTarget", targetId=target, flatten=True)
            tab.session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Log"):
                tab.call(f"{domain}.enable")
            yield tab
        finally:
            program.terminate()
            os.close(to_browser[1])
