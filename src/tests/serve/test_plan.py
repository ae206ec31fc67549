"""What `slimwise serve` loads where, and what it refuses before anything starts."""

import json
from pathlib import Path
from typing import Any

import pytest

from slimwise.artifacts.checkpoint_digest import checkpoint_digest
from slimwise.artifacts.keep_set import KeepSetRecord, write_keep_set
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.keep_set import KeepSet
from slimwise.core.vocabulary import Criterion, Deployment, Phase, ServingMode
from slimwise.engine import deployment
from slimwise.engine.command import Device, Host
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.deployment import ServedModel
from slimwise.engine.process import RunningServers
from slimwise.errors import ArtifactError, BackboneError, ConfigError, EngineError, KeepSetError
from slimwise.paths import EMBEDDED_CHECKPOINT
from slimwise.provenance import Provenance
from slimwise.serve.plan import (
    Served,
    check_before_start,
    check_layout_is_read,
    colocated_model,
    phase_models,
)
from slimwise.serve.run import run


@pytest.fixture
def keep_set(tmp_path) -> Path:
    """32 of the miniature's 64 experts."""
    return written_keep_set(tmp_path / "half.json", checkpoint_digest(EMBEDDED_CHECKPOINT))


def written_keep_set(path: Path, model_digest: str) -> Path:
    half = KeepSet((tuple(range(32)),) * 8, 64, 4)
    record = KeepSetRecord(half, Criterion.REAP, model_digest, "qwen3_5_moe_text")
    write_keep_set(path, record, Provenance("", "", "", {}, ""))
    return path


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    """A folder that says it holds 32 experts."""
    folder = tmp_path / "half"
    folder.mkdir()
    config = json.loads((EMBEDDED_CHECKPOINT / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_experts": 32}))
    (folder / "model.safetensors").touch()
    return folder


FULL = ServedModel(EMBEDDED_CHECKPOINT.resolve())


def served(mode: str, deployment: Deployment = Deployment.COLOCATED, **named: Any) -> Served:
    return Served(EMBEDDED_CHECKPOINT, ServingMode(mode), deployment, **named)


def apart(mode: str, **named: Any) -> tuple[ServedModel, ServedModel]:
    return phase_models(served(mode, Deployment.DISAGGREGATED, **named))


def start(asked: Served, logs: Path, **serving: Any) -> None:
    run(
        asked,
        serving=ServingConfig(max_model_len_tokens=64, **serving),
        layout=DisaggregationConfig(),
        logs=logs,
        on_ready=lambda _: None,
    )


def masked(mode: ServingMode, keep_set: Path, trained: Path | None = None) -> ServedModel:
    pool = PoolFiles(keep_set=keep_set, trained=trained)
    return ServedModel(EMBEDDED_CHECKPOINT.resolve(), {"kept": pool}, mode)


def test_one_server_masks_by_its_default_mode(keep_set):
    for mode in ServingMode:
        assert colocated_model(served(mode, keep_set=keep_set)) == masked(mode, keep_set)


def test_one_phase_of_a_single_server_is_refused():
    with pytest.raises(ConfigError, match="add --deployment disaggregated"):
        colocated_model(served("full", phase=Phase.DECODE))


def test_one_server_needs_no_keep_set_where_nothing_is_masked(checkpoint):
    assert colocated_model(served("full")) == FULL
    pruned = colocated_model(served("pruned", decode_checkpoint=checkpoint))
    assert pruned == ServedModel(checkpoint)


@pytest.mark.parametrize(
    ("mode", "prefill_is_pruned", "decode_is_pruned"),
    [
        ("pruned", True, True),
        ("slimwise", False, True),
        ("reverse", True, False),
    ],
)
def test_the_checkpoint_serves_the_phases_that_the_mode_prunes(
    checkpoint, mode, prefill_is_pruned, decode_is_pruned
):
    models = {False: FULL, True: ServedModel(checkpoint)}
    expected = models[prefill_is_pruned], models[decode_is_pruned]
    assert apart(mode, decode_checkpoint=checkpoint) == expected


def test_without_a_checkpoint_each_pruned_phase_masks_the_tokens_it_has(keep_set, tmp_path):
    decode = masked(ServingMode.SLIMWISE, keep_set, tmp_path / "kd")
    assert apart("slimwise", keep_set=keep_set, trained=tmp_path / "kd") == (FULL, decode)
    # A prefill server is not told where the prompt ends, and has no other tokens.
    prefill = masked(ServingMode.PRUNED, keep_set)
    assert apart("reverse", keep_set=keep_set) == (prefill, FULL)


def test_trained_tensors_that_no_server_loads_are_refused(keep_set, checkpoint, tmp_path):
    named = {"keep_set": keep_set, "trained": tmp_path / "kd"}
    from_checkpoint = named | {"decode_checkpoint": checkpoint}
    for ask in (
        lambda: colocated_model(served("full", trained=tmp_path / "kd")),
        lambda: colocated_model(served("pruned", **from_checkpoint)),
        lambda: apart("full", **named),
        lambda: apart("slimwise", **from_checkpoint),
    ):
        with pytest.raises(ConfigError, match=r"--trained .*kd .* Leave --trained out"):
            ask()
    # A request may ask one server for a mode that prunes.
    assert colocated_model(served("full", **named)).pools


@pytest.mark.parametrize("mode", ["full", "slimwise", "reverse"])
@pytest.mark.parametrize("named", [True, False])
def test_a_checkpoint_that_no_server_loads_is_refused(checkpoint, keep_set, mode, named):
    asked = {"decode_checkpoint": checkpoint, "keep_set": keep_set if named else None}
    with pytest.raises(ConfigError, match=rf"--decode-checkpoint .*half .* mode {mode} served col"):
        colocated_model(served(mode, **asked))


def test_the_full_model_apart_has_no_use_for_kept_experts(checkpoint, keep_set):
    with pytest.raises(ConfigError, match=r"--decode-checkpoint .* mode full served disaggregated"):
        apart("full", decode_checkpoint=checkpoint)
    with pytest.raises(ConfigError, match=r"--keep-set .* mode full served disaggregated"):
        apart("full", keep_set=keep_set)


def test_a_layout_that_nothing_here_reads_is_refused():
    check_layout_is_read(served("full"), DisaggregationConfig())
    with pytest.raises(ConfigError, match=r"names kv_host, unread by one server\. Add --depl"):
        check_layout_is_read(served("full"), DisaggregationConfig(kv_host="10.0.0.1"))
    alone = served("full", Deployment.DISAGGREGATED, phase=Phase.DECODE)
    check_layout_is_read(alone, DisaggregationConfig(kv_host="10.0.0.1", decode_args=("--a",)))
    for layout in (
        DisaggregationConfig(decode_port=1),
        DisaggregationConfig(prefill_urls=("http://a:1",)),
    ):
        check_layout_is_read(served("full", Deployment.DISAGGREGATED), layout)
        with pytest.raises(ConfigError, match=r"unread by --phase decode\. Its port is --port"):
            check_layout_is_read(alone, layout)


@pytest.mark.parametrize("mode", ["pruned", "slimwise", "reverse"])
def test_a_mode_that_prunes_asks_for_what_it_needs(mode):
    with pytest.raises(ConfigError, match=rf"mode {mode} served colocated .* --keep-set\.$"):
        colocated_model(served(mode))
    with pytest.raises(ConfigError, match=r"--keep-set or --decode-checkpoint\.$"):
        apart(mode)


def test_a_keep_set_that_is_none_is_named_before_anything_starts(tmp_path):
    (tmp_path / "half.json").write_text("{}")
    for name in ("half.json", "none.json"):
        with pytest.raises(ArtifactError, match=name):
            check_before_start(colocated_model(served("slimwise", keep_set=tmp_path / name)))


def test_a_keep_set_of_another_model_is_named_before_anything_starts(tmp_path):
    other = written_keep_set(tmp_path / "other.json", "0" * 64)
    with pytest.raises(KeepSetError, match=r"other\.json was chosen for .* 000000000000"):
        check_before_start(*apart("slimwise", keep_set=other))


def test_a_folder_of_no_trained_tensors_is_named_before_anything_starts(keep_set, tmp_path):
    check_before_start(masked(ServingMode.SLIMWISE, keep_set))
    with pytest.raises(ArtifactError, match="kd"):
        check_before_start(masked(ServingMode.SLIMWISE, keep_set, tmp_path / "kd"))


def test_a_folder_of_no_supported_model_is_named_before_anything_starts(monkeypatch, tmp_path):
    monkeypatch.delattr(RunningServers, "start")
    with pytest.raises(BackboneError, match="none does not exist"):
        start(Served(tmp_path / "none", ServingMode.FULL, Deployment.COLOCATED), tmp_path)


@pytest.mark.parametrize("deployment", Deployment)
def test_a_checkpoint_that_changed_is_not_served(changed, monkeypatch, tmp_path, deployment):
    monkeypatch.delattr(RunningServers, "start")
    mode = ServingMode.PRUNED if deployment is Deployment.COLOCATED else ServingMode.SLIMWISE
    asked = served(mode, deployment, decode_checkpoint=changed.parent)
    with pytest.raises(ArtifactError, match=r"model\.safetensors has changed"):
        start(asked, tmp_path)


def test_a_cpu_server_is_not_asked_for_several_gpus(monkeypatch, tmp_path):
    monkeypatch.delattr(RunningServers, "start")
    monkeypatch.setattr(deployment, "this_host", lambda: Host(Device.CPU, 2))
    with pytest.raises(EngineError, match=r"serving\.gpus=2, and the vLLM .* on CPU only"):
        start(served("full"), tmp_path, gpus=2)


def test_a_checkpoint_of_another_keep_set_is_refused(checkpoint, keep_set):
    apart("slimwise", decode_checkpoint=checkpoint, keep_set=keep_set)
    config = json.loads((checkpoint / "config.json").read_text())
    (checkpoint / "config.json").write_text(json.dumps(config | {"num_experts": 48}))
    with pytest.raises(ConfigError, match=r"has 48 experts a layer, and .* keeps 32"):
        apart("slimwise", decode_checkpoint=checkpoint, keep_set=keep_set)
