"""measure-throughput: a deployment outside any study, of real weights or of random ones."""

from pathlib import Path

from slimwise.artifacts.keep_set import read_keep_set
from slimwise.backbones.registry import inspect_checkpoint
from slimwise.config_digest import config_digest
from slimwise.core.vocabulary import Phase
from slimwise.engine.deployment import ServedModel
from slimwise.provenance import code_digest
from slimwise.sweep.config import Arm, DeploymentConfig, LoadConfig, ModelSource
from slimwise.sweep.deployments import Swept, SweptArm
from slimwise.sweep.measure import Setup, measure
from slimwise.sweep.point_log import PointLog
from slimwise.sweep.points import points
from slimwise.sweep.random_model import write_even_keep_set, write_random_model
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
    with work_directory(work) as folder:
        swept = _swept(config, folder / config.name)
        setup = Setup(config.serving, config.disaggregation, folder / config.name, endpoint)
        identity = config_digest(
            config.model_copy(
                update={"arms": config.arms[:1], "load": _without_ladder(config.load)}
            ),
            *map(code_digest, _CODE),
        )
        wanted = list(points(config.load, swept, identity))
        measure(wanted, swept, setup, PointLog(out, commit))


def _without_ladder(load: LoadConfig) -> LoadConfig:
    return load.model_copy(update={"concurrency": (), "prefill_requests": 0})


def _swept(config: DeploymentConfig, folder: Path) -> Swept:
    """The deployment, its random models and keep sets written to the folder."""
    model = _model(config.model, folder / "model")
    decode = None if config.decode is None else _model(config.decode, folder / "decode_model")
    pools = {
        name: kept.resolve()
        if isinstance(kept, Path)
        else write_even_keep_set(model, kept, folder / f"{name}.json").resolve()
        for name, kept in config.pools.items()
    }
    counts = {
        name: max(read_keep_set(path).keep_set.num_kept_per_layer) for name, path in pools.items()
    }
    num_experts = inspect_checkpoint(decode or model).shape.num_experts
    arms = [
        SweptArm(arm.mode, arm.pool, _num_kept(arm, counts, num_experts)) for arm in config.arms
    ]
    decode_model = None if decode is None else ServedModel(decode)
    served = ServedModel(model, pools)
    return Swept(config.name, config.backbone, config.routing, served, decode_model, arms)


def _model(source: ModelSource, folder: Path) -> Path:
    if source.path.is_dir():
        return source.path.resolve()
    return write_random_model(source.path, source.num_experts, folder).resolve()


def _num_kept(arm: Arm, counts: dict[str, int], num_experts: int) -> int:
    """Experts of a layer that decode may use."""
    if arm.pool is None or not arm.mode.prunes(Phase.DECODE):
        return num_experts
    return counts[arm.pool]
