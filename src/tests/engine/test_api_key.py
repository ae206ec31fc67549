"""Servers that ask for a key, or for none, and the router between them and us."""

import os
from contextlib import AbstractContextManager

import pytest

from slimwise.engine.api_key import API_KEY_VARIABLE, authorization, refuse_other_keys
from slimwise.errors import ConfigError, EngineError

from ..played_server import Asked, played_server


def server(key: str | None) -> AbstractContextManager[str]:
    """The address of a server that asks for the key."""

    def reply(asked: Asked) -> tuple[int, str]:
        is_known = key is None or asked.headers.get("Authorization") == f"Bearer {key}"
        return 200 if is_known else 401, ""

    return played_server(reply)


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        (None, None, None),
        ("a key", "a key", None),
        ("a key", "another", "answers status 401 to a request with our API key"),
        (None, "a key", "answers status 401 to a request with no API key"),
        ("a key", None, "answers without the API key"),
    ],
)
def test_all_servers_have_our_key(monkeypatch, ours, theirs, message):
    monkeypatch.delenv(API_KEY_VARIABLE, raising=False)
    if ours is not None:
        monkeypatch.setenv(API_KEY_VARIABLE, ours)
    with server(ours) as first, server(theirs) as second:
        if message is None:
            refuse_other_keys((first, second))
            return
        with pytest.raises(EngineError, match=rf"^{second}.*{message}"):
            refuse_other_keys((first, second))


@pytest.mark.parametrize("key", ["a key\n", "\tkey", "key ", "k\u00e9y"])
def test_a_key_that_no_header_carries_is_refused_and_not_shown(monkeypatch, key):
    monkeypatch.setenv(API_KEY_VARIABLE, key)
    with pytest.raises(ConfigError, match="no HTTP header can carry") as refusal:
        authorization()
    assert key not in str(refusal.value)


@pytest.fixture
def routed(monkeypatch):
    """Where vllm-router is told to have keys validated, and the key in its environment."""
    pytest.importorskip("vllm_router")
    from slimwise.engine import keyed_router

    seen = []

    def launch(arguments: object) -> None:
        urls = vars(arguments).get("api_key_validation_urls", [])
        seen.append((urls, os.environ.get("OPENAI_API_KEY")))

    monkeypatch.setattr(keyed_router, "launch_router", launch)
    words = ["--vllm-pd-disaggregation", "--prefill", "http://a:1", "--decode", "http://b:1"]
    monkeypatch.setattr("sys.argv", ["router", *words])
    monkeypatch.setenv("OPENAI_API_KEY", "a key to something else")
    return lambda: (keyed_router.main(), seen.pop())[1]


def test_the_router_has_keys_validated_and_shows_servers_no_other(monkeypatch, routed):
    monkeypatch.setenv(API_KEY_VARIABLE, "a key")
    assert routed() == (["http://a:1/v1/models"], "a key")


def test_without_a_key_the_router_shows_none(monkeypatch, routed):
    monkeypatch.delenv(API_KEY_VARIABLE, raising=False)
    assert routed() == ([], None)
