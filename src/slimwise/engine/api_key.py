"""The key that our servers ask of their clients: one variable of the environment for both.

vLLM reads it by itself. A key on a command line could be read by every user of the host.
"""

import os

API_KEY_VARIABLE = "VLLM_API_KEY"


def api_key() -> str | None:
    """The key; None if none is set."""
    return os.environ.get(API_KEY_VARIABLE) or None


def authorization() -> dict[str, str]:
    """The headers that carry the key; none if none is set."""
    key = api_key()
    return {"Authorization": f"Bearer {key}"} if key else {}
