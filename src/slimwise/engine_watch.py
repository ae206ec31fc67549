"""A job's end with the workflow engine that started it, even one that was killed outright."""

import os
import platform
import signal
import threading
import time

ENGINE_VARIABLE = "SLIMWISE_ENGINE"  # "<host>:<process id>", set by workflow/launch.py
_POLL_S = 0.5


def end_with_the_engine() -> None:
    """Send this process SIGTERM once the engine is gone.

    A killed engine cannot stop its jobs. One left behind would hold its work directory against
    the next run. Does nothing for a stage called by hand or on another host.
    """
    host, _, process = os.environ.get(ENGINE_VARIABLE, "").rpartition(":")
    if host != platform.node() or not process.isdigit():
        return
    threading.Thread(target=_watch, args=(int(process),), daemon=True).start()


def _watch(process: int) -> None:
    while _is_alive(process):
        time.sleep(_POLL_S)
    os.kill(os.getpid(), signal.SIGTERM)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
