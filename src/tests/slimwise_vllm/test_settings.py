from pathlib import Path

import pytest

from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.vocabulary import ServingMode
from slimwise.errors import ConfigError
from slimwise_vllm.settings import read_settings


def settings(**section):
    return read_settings({"slimwise": {"pools": {"half": "half.json"}, **section}})


@pytest.mark.parametrize("configuration", [None, {}, {"other": 1}, "slimwise"])
def test_a_configuration_that_does_not_mention_us_turns_nothing_on(configuration):
    assert read_settings(configuration) is None


def test_defaults_serve_the_full_model_and_split_at_the_last_prompt_token():
    found = settings()
    assert found is not None
    assert found.default_mode is ServingMode.FULL
    assert found.first_decode_offset == -1
    assert found.first_pool == "half"
    assert found.pools == {"half": PoolFiles(keep_set=Path("half.json"))}


@pytest.mark.parametrize("named", ["kd/manifest.json", "kd"])
def test_a_pool_may_name_what_was_trained_for_it(named):
    found = settings(pools={"kd": {"keep_set": "half.json", "trained": named}})
    assert found is not None
    assert found.pools["kd"].keep_set == Path("half.json")
    assert found.pools["kd"].trained_folder == Path("kd")


@pytest.mark.parametrize(
    ("section", "fault"),
    [
        ({"pools": {}}, r"slimwise\.pools"),
        ({"pools": {"a": {"keepset": "a.json"}}}, r"slimwise\.pools\.a\.keep_set"),
        ({"pools": {"a": {"keep_set": "a.json", "train": "b"}}}, r"slimwise\.pools\.a\.train"),
        ({"pools": {"full": "x.json"}}, "taken by the pool of all experts"),
        ({"pools": {"a": "a.json", "b": "b.json"}}, "default_pool must be one of a, b"),
        ({"default_pool": "other"}, "'other' is not a pool: half"),
        ({"default_mode": "fast"}, r"slimwise\.default_mode"),
        ({"first_decode_offset": 1}, r"slimwise\.first_decode_offset"),
        ({"coverage_intervall_steps": 1}, r"slimwise\.coverage_intervall_steps"),
    ],
)
def test_a_bad_value_is_named(section, fault):
    with pytest.raises(ConfigError, match=fault):
        settings(**section)
