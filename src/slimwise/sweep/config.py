"""Which loads the throughput of a deployment is measured under."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from slimwise.core.vocabulary import DecoderId, Routing, ServingMode
from slimwise.engine.config import DisaggregationConfig, ServingConfig
from slimwise.errors import ConfigError
from slimwise.stage_config import StageConfig

Count = Annotated[int, Field(ge=1)]


class LoadConfig(StageConfig):
    """A ladder of loads: users who each wait for an answer and then ask again."""

    concurrency: tuple[Count, ...] = Field(
        default=(1, 16, 64, 128, 256), description="Requests in flight, a point for each number."
    )
    prompt_tokens: int = Field(
        default=1024, ge=1, description="Tokens of every prompt. SlimWise, figure 4: 1k in."
    )
    output_tokens: int = Field(
        default=8192, ge=2, description="Tokens of every answer. SlimWise, figure 4: 8k out."
    )
    min_requests: int = Field(
        default=1, ge=1, description="Requests of a point whose concurrency is lower."
    )
    prefill_requests: int = Field(
        default=32,
        ge=0,
        description="Requests in flight for a single token each, by which prefill is timed; 0 = "
        "it is not. SlimWise, figure 2.",
    )
    seed: int = Field(default=0, ge=0, description="Seed of the random prompts.")

    def without_ladder(self) -> "LoadConfig":
        """The slice that says what a point asks, whichever others are measured."""
        return self.by_default("concurrency", "prefill_requests")


class Placement(StrEnum):
    """What a decoder is served from; the end of its name where not from a checkpoint alone."""

    ALONE = ""
    POOL = "-colocated"
    APART = "-disaggregated"


class SweptDecoder(NamedTuple):
    """A decoder and what it is served from, spelled as its folder under 70_evaluation/."""

    decoder: DecoderId
    placement: Placement

    @classmethod
    def parse(cls, name: str) -> "SweptDecoder":
        """What the name says; ConfigError if it is none, or the full decoder as a pool."""
        ending = next(
            (each for each in (Placement.POOL, Placement.APART) if name.endswith(each)),
            Placement.ALONE,
        )
        decoder = DecoderId.parse(name.removesuffix(ending))
        if decoder.is_full and ending is Placement.POOL:
            raise ConfigError(f"decoder {name}: the full decoder is no pool. Name it full.")
        return cls(decoder, ending)


class SweepConfig(LoadConfig):
    """The loads, and the decoders of a study that are measured under them."""

    decoders: tuple[str, ...] = Field(
        default=(),
        description="Decoders that are swept, none if empty: full, reap-m32 from its own "
        "checkpoint, reap-m32-colocated as a pool of the full model, reap-m32-disaggregated.",
    )

    def swept_decoders(self) -> tuple[SweptDecoder, ...]:
        """The decoders with what each is served from."""
        return tuple(map(SweptDecoder.parse, self.decoders))

    @property
    def num_servers(self) -> int:
        """Servers that the largest of them needs."""
        is_apart = any(swept.placement is Placement.APART for swept in self.swept_decoders())
        return 1 + is_apart

    @property
    def load(self) -> LoadConfig:
        """The slice of each decoder, the same whatever others are swept."""
        return LoadConfig(**{name: getattr(self, name) for name in LoadConfig.model_fields})


class ModelSource(StageConfig):
    """A model folder, or the shape that one would have."""

    path: Path = Field(
        description="Model folder; or a config.json, whose model is served with random weights."
    )
    num_experts: int | None = Field(
        default=None, ge=1, description="Experts of each layer, where not those of config.json."
    )


class Arm(StageConfig):
    """One way in which a server is asked."""

    mode: ServingMode = Field(description="Serving mode.")
    pool: str | None = Field(default=None, description="Pool of the pruned phases.")


class DeploymentConfig(StageConfig):
    """A deployment that is measured by itself, outside a study."""

    name: str = Field(description="Tells its rows from those of other deployments.")
    backbone: str = Field(description="Name in tables.")
    model: ModelSource = Field(description="What the one server, or the prefill server, loads.")
    decode: ModelSource | None = Field(
        default=None, description="What a decode server loads; null = one server for both phases."
    )
    pools: dict[str, Path | int] = Field(
        default={}, description="Keep-set file of each pool, or how many experts it keeps, evenly."
    )
    arms: tuple[Arm, ...] = Field(
        default=(Arm(mode=ServingMode.FULL),),
        min_length=1,
        description="Measured in turn; without pools, the one mode is that of the deployment.",
    )
    skew_strength: float = Field(
        default=0.0,
        ge=0,
        description="Spread of the popularity of experts of random weights, in pools and smaller "
        "models the most popular; load.seed says which. 0 = uniform routing.",
    )
    load: LoadConfig = Field(default_factory=LoadConfig, description="What it is asked.")
    serving: ServingConfig = Field(description="How its servers run.")
    disaggregation: DisaggregationConfig = Field(
        default_factory=DisaggregationConfig, description="Where prefill and decode run."
    )

    @property
    def routing(self) -> Routing:
        """How tokens choose experts."""
        if self.model.path.is_dir():
            return Routing.REAL
        return Routing.SKEWED if self.skew_strength else Routing.UNIFORM

    @model_validator(mode="after")
    def _arms_have_pools(self) -> Self:
        for arm in self.arms:
            if arm.pool is not None and arm.pool not in self.pools:
                raise ValueError(f"arm {arm.mode} names pool {arm.pool}, which pools does not")
            if self.pools and arm.pool is None and arm.mode is not ServingMode.FULL:
                raise ValueError(f"arm {arm.mode} would be answered as full: name its pool")
        if len(self.arms) > 1 and not self.pools:
            raise ValueError("several arms differ by their pools: name some")
        if self.skew_strength and self.routing is Routing.REAL:
            raise ValueError(
                f"skew_strength={self.skew_strength} is for random weights, and {self.model.path} "
                "has others: set it to 0"
            )
        return self
