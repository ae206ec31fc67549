"""The key that our servers ask of their clients: one variable of the environment for both.

vLLM reads it by itself. A key on a command line could be read by every user of the host.
"""

import os
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from http.client import HTTPException

from slimwise.errors import ConfigError, EngineError

API_KEY_VARIABLE = "VLLM_API_KEY"
KEYED_PATH = "/v1/models"
"""A server that has a key answers it only to those who show it."""

_OK = 200
_TIMEOUT_S = 10


def api_key() -> str | None:
    """The key; None if none is set. ConfigError if no request could show it."""
    key = os.environ.get(API_KEY_VARIABLE) or None
    if key is not None and (key != key.strip() or not (key.isascii() and key.isprintable())):
        raise ConfigError(
            f"{API_KEY_VARIABLE} has a line's end, a space at an end or a character beyond ASCII, "
            "which no HTTP header can carry. Take it out; files of secrets often end with a line."
        )
    return key


def authorization() -> dict[str, str]:
    """The headers that carry the key; none if none is set."""
    key = api_key()
    return {"Authorization": f"Bearer {key}"} if key else {}


def refuse_other_keys(base_urls: Sequence[str]) -> None:
    """EngineError names the first server that refuses our key, or answers without it.

    Behind a router, such a server would fail all requests, or answer everybody's.
    """
    shown = "no API key" if api_key() is None else "our API key"
    for url in base_urls:
        status = _status(url, authorization())
        if status != _OK:
            raise EngineError(
                f"{url} answers status {status} to a request with {shown}. Start it with the "
                f"{API_KEY_VARIABLE} of this command, or this command with its."
            )
        if api_key() is not None and _status(url, {}) == _OK:
            raise EngineError(
                f"{url} answers without the API key that {API_KEY_VARIABLE} sets here. Start it "
                "with the same key."
            )


def _status(base_url: str, headers: Mapping[str, str]) -> int:
    request = urllib.request.Request(f"{base_url}{KEYED_PATH}", headers=dict(headers))
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as reply:
            return reply.status
    except urllib.error.HTTPError as refusal:
        return refusal.code
    except (OSError, HTTPException) as failure:
        raise EngineError(f"{base_url} does not answer: {failure}.") from failure
