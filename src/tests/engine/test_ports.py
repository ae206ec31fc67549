import socket

import pytest

from slimwise.engine.ports import reserved_ports


def listen(port: int) -> socket.socket:
    """As vLLM, ZeroMQ and the router do."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind(("127.0.0.1", port))
    server.listen()
    return server


def test_ports_differ_and_a_server_may_listen_on_them_twice():
    with reserved_ports("127.0.0.1", 3) as ports:
        assert len(set(ports)) == 3
        for _ in range(2):
            with listen(ports[1]), socket.create_connection(("127.0.0.1", ports[1])):
                pass


def test_a_reserved_port_is_refused_to_those_who_would_take_any():
    with reserved_ports("127.0.0.1", 1) as (port,):
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with listen(port), pytest.raises(OSError, match="in use"):
            listen(port)


def test_ports_are_free_again_after_the_block():
    with reserved_ports("127.0.0.1", 1) as (port,):
        pass
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
