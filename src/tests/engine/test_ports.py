import socket

import pytest

from slimwise.engine.ports import reserved_port
from slimwise.errors import EngineError

HOST = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """As vLLM, ZeroMQ and the router do."""
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((HOST, port))
    server.listen()
    return server


def test_ports_differ_and_a_server_may_listen_on_one_twice():
    with reserved_port(HOST) as port, reserved_port(HOST) as other:
        assert port != other
        for _ in range(2):
            with listen(port), socket.create_connection((HOST, port)):
                pass


def test_a_reserved_port_is_refused_to_those_who_would_take_any():
    with reserved_port(HOST) as port:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((HOST, port))
        with listen(port), pytest.raises(OSError, match="in use"):
            listen(port)


def test_a_port_is_free_again_after_the_block():
    with reserved_port(HOST) as port:
        pass
    with socket.socket() as other:
        other.bind((HOST, port))


def test_a_named_port_is_had_or_refused():
    with reserved_port(HOST) as free:
        pass
    with reserved_port(HOST, free) as port:
        assert port == free
        with listen(port), pytest.raises(EngineError, match=f"port {port} of {HOST}.*in use"):
            reserved_port(HOST, port).__enter__()


def test_an_address_of_another_host_is_refused():
    with pytest.raises(EngineError, match=r"of 192\.0\.2\.1 cannot be had"):
        reserved_port("192.0.2.1").__enter__()
