"""What is measured: a deployment, and the ways in which it is asked."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from slimwise.artifacts.backbone_record import BackboneRecord
from slimwise.artifacts.pool_files import PoolFiles
from slimwise.core.vocabulary import DecoderId, Deployment, Phase, ServingMode
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.engine.deployment import (
    RunningDeployment,
    ServedModel,
    serve_colocated,
    serve_disaggregated,
)
from slimwise.engine.process import RunningServers
from slimwise.errors import ConfigError

_REAL = "real"
"""The model's own routing."""


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
    routing: str
    model: ServedModel
    decode: ServedModel | None
    tokenizer: Path
    arms: Sequence[SweptArm]

    @property
    def deployment(self) -> Deployment:
        return Deployment.COLOCATED if self.decode is None else Deployment.DISAGGREGATED


def swept_decoder(
    record: BackboneRecord,
    decoder: DecoderId,
    *,
    checkpoint: Path | None,
    pool: Sequence[Path],
    is_apart: bool,
) -> Swept:
    """A study's decoder: the backbone, its own checkpoint, a pool of the backbone, or both phases.

    checkpoint is a manifest; pool a keep set and the manifest of what was trained, if anything.
    ConfigError unless a pruned decoder has exactly one of them, and the full one neither.
    """
    if (checkpoint is not None) + bool(pool) != (not decoder.is_full) or (pool and is_apart):
        raise ConfigError(
            f"decoder {decoder} was given checkpoint {checkpoint} and a pool of {len(pool)} files: "
            "the full decoder takes neither, a disaggregated one a checkpoint, another pruned one "
            "either of them."
        )
    num_kept = decoder.num_kept or record.shape.num_experts
    model, decode, mode, name = ServedModel(record.model.resolve()), None, ServingMode.FULL, None
    if pool:
        name, mode = str(decoder), ServingMode.SLIMWISE
        keep_set, *trained = (path.resolve() for path in pool)
        files = PoolFiles(keep_set=keep_set, trained=trained[0] if trained else None)
        model = replace(model, pools={name: files})
    elif checkpoint is not None:
        own = ServedModel(checkpoint.parent.resolve())
        model, decode = (model, own) if is_apart else (own, None)
        mode = ServingMode.SLIMWISE if is_apart else ServingMode.PRUNED
    arm = SweptArm(mode, name, num_kept)
    return Swept(str(decoder), record.name, _REAL, model, decode, model.folder, (arm,))


@contextmanager
def running(
    swept: Swept, serving: ServingConfig, layout: DisaggregationConfig, logs: Path
) -> Iterator[RunningDeployment]:
    """The deployment's servers, healthy for as long as the block runs."""
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
