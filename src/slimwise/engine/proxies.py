"""Proxies of the environment are for other hosts: none may come between us and our servers."""

import os
from collections.abc import Iterable

_VARIABLES = ("no_proxy", "NO_PROXY")
_THIS_HOST = ("127.0.0.1", "localhost")


def reach_directly(hosts: Iterable[str] = _THIS_HOST) -> None:
    """Except the hosts from the proxies that this process and those it starts read."""
    given = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")
    if given != "*":
        excepted = ",".join(dict.fromkeys([*filter(None, given.split(",")), *hosts]))
        os.environ |= dict.fromkeys(_VARIABLES, excepted)
