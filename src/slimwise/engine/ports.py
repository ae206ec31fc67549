"""A port that this host gives to nobody else while we hold it."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from slimwise.errors import EngineError


@contextmanager
def reserved_port(host: str, port: int = 0) -> Iterator[int]:
    """The port of an address of this host, 0 for a free one, ours until the block ends.

    The kernel hands out no port on which a socket is bound, and lets a server that sets
    SO_REUSEADDR (vLLM, ZeroMQ and the router do) listen beside one that never listens. So there is
    no moment between choosing a port and using it, and a server may come back to its port.
    EngineError if the address is not of this host or somebody has the port.
    """
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind((host, port))
        except OSError as failure:
            raise EngineError(
                f"port {port} of {host} cannot be had: {failure.strerror}. Name an address of this "
                "host in serving.host and disaggregation.kv_host, and as port a free one or 0."
            ) from failure
        yield holder.getsockname()[1]
