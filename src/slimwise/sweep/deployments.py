"""What is measured: a deployment, and the ways in which it is asked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slimwise.artifacts.backbone_record import BackboneRecord
from slimwise.artifacts.manifest import exported_folder
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.vocabulary import (
    DecoderId,
    Deployment,
    Distillation,
    Phase,
    Routing,
    ServingMode,
)
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.deployment import (
    RunningDeployment,
    ServedModel,
    serve_colocated,
    serve_disaggregated,
)
from slimwise.engine.process import RunningServers
from slimwise.errors import ConfigError
from slimwise.sweep.config import Placement


@dataclass(frozen=True)
class SweptArm:
    """A mode, and the pool of its pruned phases where the server has any.

    num_kept counts the experts of a layer that decode may use.
    """

    mode: ServingMode
    pool: str | None
    num_kept: int

    @property
    def body(self) -> dict[str, Any]:
        """What a request says to be answered so; the server's own mode needs no words."""
        return {} if self.pool is None else _xargs(self.mode, self.pool)

    @property
    def prefill_body(self) -> dict[str, Any]:
        """The same for a prefill that prunes as decode does."""
        if self.pool is None or not self.mode.prunes(Phase.DECODE):
            return self.body
        return _xargs(ServingMode.PRUNED, self.pool)


@dataclass(frozen=True)
class Swept:
    """A deployment by what its servers load; decode is None for one server of both phases.

    tokenizer is a folder with that of all its models.
    """

    name: str
    backbone: str
    routing: Routing
    model: ServedModel
    decode: ServedModel | None
    tokenizer: Path
    arms: Sequence[SweptArm]

    @property
    def deployment(self) -> Deployment:
        """Whether one server answers."""
        return Deployment.COLOCATED if self.decode is None else Deployment.DISAGGREGATED


def swept_decoder(
    record: BackboneRecord, decoder: DecoderId, placement: Placement, files: Sequence[Path]
) -> Swept:
    """A study's decoder on the backbone, on its own checkpoint, as a pool, or on two servers.

    files are none for the full decoder, a pool's keep set and the manifest of what was trained if
    anything, and otherwise the manifest of the checkpoint. ConfigError if there are more or fewer,
    ArtifactError if that is no checkpoint's.
    """
    is_pool = placement is Placement.POOL
    is_distilled = decoder.distilled is not Distillation.NONE
    expected = 1 + (is_pool and is_distilled) - decoder.is_full
    if len(files) != expected:
        raise ConfigError(
            f"decoder {decoder}{placement} was given {len(files)} files and is served from "
            f"{expected}. Run the rule that names them."
        )
    full = ServedModel(record.model.resolve())
    own = full if decoder.is_full or is_pool else ServedModel(exported_folder(files[0]))
    arm = SweptArm(_mode(decoder, placement), None, decoder.num_kept or record.shape.num_experts)
    if is_pool:
        own = replace(full, pools={str(decoder): PoolFiles.of(files)})
        arm = replace(arm, pool=str(decoder))
    model, decode = (full, own) if placement is Placement.APART else (own, None)
    return Swept(
        f"{decoder}{placement}", record.name, Routing.REAL, model, decode, full.folder, arms=(arm,)
    )


def _mode(decoder: DecoderId, placement: Placement) -> ServingMode:
    if decoder.is_full:
        return ServingMode.FULL
    return ServingMode.PRUNED if placement is Placement.ALONE else ServingMode.SLIMWISE


@contextmanager
def running(
    swept: Swept, serving: ServingConfig, layout: DisaggregationConfig, logs: Path
) -> Iterator[RunningDeployment]:
    """The deployment's servers, healthy for as long as the block runs.

    They read every prompt, though points repeat each other's, unless serving.extra_args say else.
    """
    arguments = ("--no-enable-prefix-caching", *serving.extra_args)
    serving = serving.model_copy(update={"extra_args": arguments})
    if swept.decode is None:
        with serve_colocated(swept.model, serving, logs / "server.log") as deployment:
            yield deployment
        return
    with serve_disaggregated(swept.model, swept.decode, serving, layout, logs) as deployment:
        yield deployment


def already_running(endpoint: str, layout: DisaggregationConfig) -> RunningDeployment:
    """A deployment that answers at the endpoint; the layout names its servers if it has two."""
    prefill, decode = layout.prefill_urls or (endpoint,), layout.decode_urls or (endpoint,)
    return RunningDeployment(endpoint, prefill, decode, (), RunningServers())


def _xargs(mode: ServingMode, pool: str) -> dict[str, Any]:
    return {"vllm_xargs": {"slimwise_mode": str(mode), "slimwise_pool": pool}}
