"""Proxies of the environment are for other hosts: none may come between us and our servers."""

import os

_VARIABLES = ("no_proxy", "NO_PROXY")
_THIS_HOST = ("127.0.0.1", "localhost")


def reach_this_host_directly() -> None:
    """Except this host from the proxies that this process and those it starts read."""
    given = next((os.environ[name] for name in _VARIABLES if os.environ.get(name)), "")
    if given != "*":
        hosts = ",".join(dict.fromkeys([*filter(None, given.split(",")), *_THIS_HOST]))
        os.environ |= dict.fromkeys(_VARIABLES, hosts)
