"""Becomes vllm-router, asking its clients for our key: `python -m slimwise.engine.keyed_router`.

The router itself can have keys validated, but its command line takes no address for that.
"""

import os
import sys

from vllm_router.launch_router import launch_router, parse_router_args

from slimwise.engine.api_key import KEYED_PATH, api_key

_SHOWN_KEY = "OPENAI_API_KEY"
"""The router shows this to the servers: it must not be a key to something else."""


def main() -> None:
    """Route by vllm-router's arguments, with a key only for those whom a prefill server knows."""
    arguments = parse_router_args(sys.argv[1:])
    key = api_key()
    os.environ.pop(_SHOWN_KEY, None)
    if key is not None:
        os.environ[_SHOWN_KEY] = key
        urls = [f"{url}{KEYED_PATH}" for url, _ in arguments.prefill_urls]
        vars(arguments)["api_key_validation_urls"] = urls
    launch_router(arguments)  # pyright: ignore[reportArgumentType] (it takes both)


if __name__ == "__main__":
    main()
