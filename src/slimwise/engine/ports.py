"""Ports that this host gives to nobody else while we hold them."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager


@contextmanager
def reserved_ports(host: str, count: int) -> Iterator[tuple[int, ...]]:
    """Different free ports of an address of this host, ours until the block ends.

    The kernel hands out no port on which a socket is bound, and lets a server that sets
    SO_REUSEADDR (vLLM, ZeroMQ and the router do) listen beside one that never listens. So there is
    no moment between choosing a port and using it, and a server may come back to its port.
    """
    with ExitStack() as held:
        yield tuple(_bind(held.enter_context(socket.socket()), host) for _ in range(count))


def _bind(holder: socket.socket, host: str) -> int:
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind((host, 0))
    return holder.getsockname()[1]
