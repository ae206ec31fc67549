from contextlib import contextmanager
from pathlib import Path

import pytest

from slimwise.artifacts.manifest import MANIFEST_NAME
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.vocabulary import Deployment, Phase, ServingMode
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.process import RunningServers
from slimwise.errors import ArtifactError, ConfigError
from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.sweep.config import DeploymentConfig, LoadConfig, SweptDecoder
from slimwise.sweep.deployments import Swept, running, swept_decoder
from slimwise.sweep.points import points

from .backbone_record import RECORD

KEEP_SET, TRAINED = Path("/kept/reap-m32.json"), Path("/trained/reap-m32-kd_zero/manifest.json")
LOAD = LoadConfig(concurrency=(2, 8), min_requests=4, prefill_requests=3, output_tokens=16)


def _swept(name: str, *files: Path) -> Swept:
    return swept_decoder(RECORD, *SweptDecoder.parse(name), files)


def test_the_full_decoder_is_the_backbone():
    swept = _swept("full")
    assert swept.model.folder == RECORD.model
    assert swept.decode is None
    assert (swept.arms[0].mode, swept.arms[0].num_kept) == (ServingMode.FULL, 64)


def test_a_decoder_is_served_from_its_own_checkpoint(exported):
    swept = _swept("reap-m32", exported)
    assert swept.model.folder == exported.parent
    assert (swept.arms[0].mode, swept.arms[0].num_kept) == (ServingMode.PRUNED, 32)
    assert swept.arms[0].body == {}


def test_a_distilled_decoder_is_served_as_a_pool_with_what_was_trained():
    swept = _swept("reap-m32-kd_zero-colocated", KEEP_SET, TRAINED)
    name = "reap-m32-kd_zero"
    assert swept.model.folder == RECORD.model
    assert swept.model.pools == {name: PoolFiles(keep_set=KEEP_SET, trained=TRAINED)}
    assert swept.arms[0].body == {
        "vllm_xargs": {"slimwise_mode": "slimwise", "slimwise_pool": name}
    }
    assert swept.arms[0].prefill_body["vllm_xargs"]["slimwise_mode"] == "pruned"


def test_prefill_and_decode_apart_are_the_backbone_and_the_checkpoint(exported):
    swept = _swept("reap-m32-disaggregated", exported)
    assert swept.deployment is Deployment.DISAGGREGATED
    assert swept.model.folder == RECORD.model
    assert swept.decode is not None
    assert swept.decode.folder == exported.parent
    assert swept.arms[0].mode is ServingMode.SLIMWISE


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("full", [TRAINED]),
        ("reap-m32", []),
        ("reap-m32-kd_zero-colocated", [KEEP_SET]),
        ("reap-m32-colocated", [KEEP_SET, TRAINED]),
        ("reap-m32-disaggregated", [KEEP_SET, TRAINED]),
    ],
)
def test_files_that_do_not_fit_the_decoder_are_refused(name, files):
    with pytest.raises(ConfigError, match="was given"):
        _swept(name, *files)


def test_a_manifest_that_is_no_checkpoints_is_refused():
    with pytest.raises(ArtifactError, match="mini_backbone/1"):
        _swept("reap-m32", EMBEDDED_CHECKPOINT / MANIFEST_NAME)


def test_a_checkpoint_that_changed_is_not_swept(changed, monkeypatch, tmp_path):
    monkeypatch.delattr(RunningServers, "start")
    serving = ServingConfig(max_model_len_tokens=64)
    swept = _swept("reap-m32", changed)
    with pytest.raises(ArtifactError, match=r"model\.safetensors has changed"):
        running(swept, serving, DisaggregationConfig(), tmp_path).__enter__()


@pytest.mark.parametrize(
    ("name", "starts"),
    [("full", "serve_colocated"), ("full-disaggregated", "serve_disaggregated")],
)
def test_servers_read_prompts_that_they_have_read_before(monkeypatch, tmp_path, name, starts):
    started = []

    @contextmanager
    def serve(*given):
        (serving,) = [each for each in given if isinstance(each, ServingConfig)]
        started.append(serving.extra_args)
        yield

    monkeypatch.setattr(f"slimwise.sweep.deployments.{starts}", serve)
    serving = ServingConfig(max_model_len_tokens=64, extra_args=("--enable-prefix-caching",))
    with running(_swept(name), serving, DisaggregationConfig(), tmp_path):
        # vLLM takes the last one.
        assert started == [("--no-enable-prefix-caching", "--enable-prefix-caching")]


@pytest.mark.parametrize("name", ["full-colocated", "reap-32", "reap-m32-apart"])
def test_a_name_that_is_no_decoder_is_refused(name):
    with pytest.raises(ConfigError):
        SweptDecoder.parse(name)


def test_a_point_for_each_load_and_one_for_prefill():
    found = list(points(LOAD, _swept("full"), "identity"))
    assert [(point.phase, point.load.concurrency) for point in found] == [
        (Phase.PREFILL, 3),
        (Phase.DECODE, 2),
        (Phase.DECODE, 8),
    ]
    assert [point.load.num_requests for point in found] == [4, 4, 8]
    assert [point.load.output_tokens for point in found] == [1, 16, 16]
    assert len({point.digest for point in found}) == 3


def test_prefill_apart_is_not_timed_through_the_router(exported):
    found = points(LOAD, _swept("reap-m32-disaggregated", exported), "identity")
    assert {point.phase for point in found} == {Phase.DECODE}


@pytest.mark.parametrize(
    ("pools", "arms", "message"),
    [
        ({}, [{"mode": "slimwise", "pool": "m9"}], "names pool m9"),
        ({}, [{"mode": "full"}, {"mode": "pruned"}], "differ by their pools"),
        ({"m9": 9}, [{"mode": "slimwise"}], "arm slimwise would be answered as full"),
    ],
)
def test_arms_that_a_deployment_cannot_tell_apart_are_refused(pools, arms, message):
    with pytest.raises(ValueError, match=message):
        DeploymentConfig.model_validate(
            {
                "name": "a",
                "backbone": "b",
                "model": {"path": "c"},
                "pools": pools,
                "arms": arms,
                "serving": {"max_model_len_tokens": 64},
            }
        )
