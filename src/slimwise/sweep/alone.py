"""measure-throughput: a deployment outside any study, of real weights or of random ones."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from slimwise.artifacts.keep_set import read_keep_set
from slimwise.backbones.registry import inspect_checkpoint
from slimwise.config_digest import config_digest
from slimwise.core.skew import SKEWED_WEIGHTS, Skew
from slimwise.core.vocabulary import Phase, Routing
from slimwise.engine.config import ServingConfig
from slimwise.engine.deployment import ServedModel
from slimwise.provenance import code_digest
from slimwise.sweep.config import Arm, DeploymentConfig, ModelSource
from slimwise.sweep.deployments import Swept, SweptArm
from slimwise.sweep.measure import Setup, measure
from slimwise.sweep.point_log import PointLog
from slimwise.sweep.points import points
from slimwise.sweep.random_model import (
    count_experts,
    write_popular_keep_set,
    write_random_model,
    write_word_tokenizer,
)
from slimwise.work_directory import work_directory

_CODE = ("slimwise.sweep.alone", "slimwise_vllm.plugin")


def run(
    config: DeploymentConfig,
    *,
    out: Path,
    work: Path,
    endpoint: str | None = None,
    commit: str | None = None,
) -> None:
    """Append the deployment's rows to the file out, JSON lines, but for those that it has.

    endpoint is the address of a deployment that runs already: a server, or the router of servers
    that disaggregation.prefill_urls and decode_urls name. commit is written where git is not at
    hand.
    """
    with work_directory(work) as whole:
        folder = whole / config.name
        swept = _swept(config, folder)
        setup = Setup(_serving(config, swept), config.disaggregation, folder, endpoint)
        wanted = list(points(config.load, swept, _identity(config)))
        measure(wanted, swept, setup, PointLog(out, commit))


def _identity(config: DeploymentConfig) -> str:
    """Digest of all that shapes a point beside its arm and its place on the ladder."""
    shared = {
        "arms": (),
        "load": config.load.without_ladder(),
        "serving": config.serving.without_waiting(),
        "disaggregation": config.disaggregation.without_places(),
    }
    files = [kept for kept in config.pools.values() if isinstance(kept, Path)]
    return config_digest(
        config.model_copy(update=shared),
        *(path.read_text("utf-8") for path in files),
        *map(code_digest, _CODE),
    )


def _serving(config: DeploymentConfig, swept: Swept) -> ServingConfig:
    """The settings of the servers, which without weights draw some."""
    if config.routing is Routing.REAL:
        return config.serving
    drawn = (*_drawn_weights(config), "--tokenizer", str(swept.tokenizer))
    return config.serving.model_copy(update={"extra_args": (*drawn, *config.serving.extra_args)})


def _drawn_weights(config: DeploymentConfig) -> tuple[str, ...]:
    if config.routing is Routing.UNIFORM:
        return "--load-format", "dummy"
    skew = Skew(config.skew_strength, count_experts(config.model.path), config.load.seed)
    return (
        *("--load-format", SKEWED_WEIGHTS),
        *("--model-loader-extra-config", json.dumps(asdict(skew))),
    )


def _swept(config: DeploymentConfig, folder: Path) -> Swept:
    """The deployment, its random models and keep sets written to the folder."""
    model = _model(config.model, folder / "model")
    decode = None if config.decode is None else _model(config.decode, folder / "decode_model")
    pools = {
        name: _keep_set(kept, model, config.load.seed, folder / name)
        for name, kept in config.pools.items()
    }
    num_experts = inspect_checkpoint(decode or model).shape.num_experts
    return Swept(
        config.name,
        config.backbone,
        config.routing,
        model=ServedModel(model, pools),
        decode=None if decode is None else ServedModel(decode),
        tokenizer=_tokenizer(config.model, folder / "tokenizer"),
        arms=[
            SweptArm(arm.mode, arm.pool, _num_kept(arm, pools, num_experts)) for arm in config.arms
        ],
    )


def _model(source: ModelSource, folder: Path) -> Path:
    if source.path.is_dir():
        return source.path.resolve()
    return write_random_model(source.path, source.num_experts, folder).resolve()


def _tokenizer(source: ModelSource, folder: Path) -> Path:
    if source.path.is_dir():
        return source.path.resolve()
    return write_word_tokenizer(source.path, folder).resolve()


def _keep_set(kept: Path | int, model: Path, seed: int, folder: Path) -> Path:
    if isinstance(kept, Path):
        return kept.resolve()
    return write_popular_keep_set(model, kept, seed, folder / "keep_set.json").resolve()


def _num_kept(arm: Arm, pools: Mapping[str, Path], num_experts: int) -> int:
    """Experts of a layer that decode may use, the most of any layer."""
    if arm.pool is None or not arm.mode.prunes(Phase.DECODE):
        return num_experts
    return max(read_keep_set(pools[arm.pool]).keep_set.num_kept_per_layer)
