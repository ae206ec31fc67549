"""The key that our servers ask of their clients: one variable of the environment for both.

vLLM reads it by itself. A key on a command line could be read by every user of the host.
"""

import os

API_KEY_VARIABLE = "VLLM_API_KEY"


def authorization() -> dict[str, str]:
    """The headers that carry the key; none if none is set."""
    key = os.environ.get(API_KEY_VARIABLE)
    return {"Authorization": f"Bearer {key}"} if key else {}
