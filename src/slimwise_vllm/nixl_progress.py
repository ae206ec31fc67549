"""Lets NIXL's progress thread sleep where servers share few cores.

NIXL's Python interface asks that thread to wait 0 ms for events before it looks again, so each
server keeps a core busy for as long as it runs. Events wake the thread all the same.
"""

import importlib
import importlib.util
from typing import Any

_POLL_US = 1000  # the shortest wait that NIXL does not round to none
_WAIT = "pthrDelay"
_PACKAGES = ("nixl_cu13", "nixl_cu12")


def let_progress_thread_sleep() -> None:
    """Give every NIXL agent of this process that wait; harmless to repeat, or without NIXL."""
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            continue
        bindings: Any = importlib.import_module(f"{package}._bindings")
        settings = bindings.nixlAgentConfig
        if not hasattr(settings, "slimwise_original"):
            bindings.nixlAgentConfig = _with_wait(settings)


def _with_wait(settings: type) -> type:
    class WaitingAgentConfig(settings):
        slimwise_original = settings

        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, _POLL_US if (name, value) == (_WAIT, 0) else value)

    return WaitingAgentConfig
