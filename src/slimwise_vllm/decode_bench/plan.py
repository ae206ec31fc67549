"""What a decode benchmark measures: engines of one model shape, and in each the arms to compare."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from slimwise.core.vocabulary import Phase, Routing, ServingMode
from slimwise_vllm.request_pools import PhasePools

_PREFILL_STEP_TOKENS = 8192
_Count = Annotated[int, Field(gt=0)]
_RandomRouting = Literal[Routing.UNIFORM, Routing.SKEWED]


class _PlanModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Arm(_PlanModel):
    """One way to run a decode step of the same requests; without a mode, the plugin is off."""

    mode: ServingMode | None = None
    pool: str | None = None
    coverage: bool = False
    tuned: bool = Field(
        default=False,
        description="Kernel settings from the plan's folder instead of those that vLLM has.",
    )

    @model_validator(mode="after")
    def _is_whole(self) -> "Arm":
        prunes = self.mode not in (None, ServingMode.FULL)
        if prunes != (self.pool is not None):
            raise ValueError(f"mode {self.mode} {'needs a' if prunes else 'takes no'} pool")
        if self.mode is None and self.coverage:
            raise ValueError("coverage is counted by the plugin, so it needs a mode")
        return self

    @property
    def name(self) -> str:
        """For example "unhooked", "full", "slimwise-m128", "slimwise-m128+coverage"; no kernels."""
        if self.mode is None:
            return "unhooked"
        named = self.mode if self.pool is None else f"{self.mode}-{self.pool}"
        return f"{named}+coverage" if self.coverage else named

    def pools(self, names: list[str]) -> PhasePools:
        """Pool of each phase, given the pruned pools in their order."""
        if self.mode is None or self.pool is None:
            return PhasePools(0, 0)
        pool = 1 + names.index(self.pool)
        return PhasePools(*(pool if self.mode.prunes(phase) else 0 for phase in Phase))


class EnginePlan(_PlanModel):
    """One engine, in a process of its own."""

    name: str
    num_experts: int = Field(gt=0, description="Experts a layer that the weights hold.")
    pools: dict[str, int] = Field(default={}, description="num_kept of each pool, by its name.")
    arms: tuple[Arm, ...] = Field(default=(Arm(),), min_length=1)
    routings: tuple[_RandomRouting, ...] = (Routing.UNIFORM, Routing.SKEWED)
    rounds: dict[_Count, _Count] = Field(
        min_length=1, description="Blocks of each arm, by batch; the batches are those measured."
    )

    @model_validator(mode="after")
    def _arms_have_pools(self) -> "EnginePlan":
        for arm in self.arms:
            if arm.pool is not None and arm.pool not in self.pools:
                raise ValueError(f"arm {arm.name}: pool {arm.pool!r} is not one of the pools")
            if arm.mode is not None and not self.pools:
                raise ValueError(f"arm {arm.name} needs at least one pool: the plugin is off else")
            if self.arms.count(arm) > 1:
                raise ValueError(f"arm {arm.name} is given twice: leave one out")
        return self

    @property
    def batches(self) -> list[int]:
        """Batches to measure, the smallest first."""
        return sorted(self.rounds)


class BenchPlan(_PlanModel):
    """The shape, the engines, and how each step is timed."""

    model_config_file: Path = Field(description="config.json of the full model.")
    num_experts: int = Field(gt=0, description="Experts a layer of the full model.")
    engines: tuple[EnginePlan, ...] = Field(min_length=1)
    context_tokens: int = Field(gt=1, description="Mean context of all timed steps, tokens.")
    block_steps: int = Field(default=16, gt=0, description="Timed steps of an arm in a row.")
    settle_steps: int = Field(
        default=3, ge=2, description="Untimed steps after a switch of arms; one is still in flight."
    )
    coverage_steps: int = Field(default=24, gt=0, description="Steps whose experts are counted.")
    max_step_tokens: int = Field(default=16384, gt=1, description="Tokens that a step may take.")
    prefill_requests: int = Field(default=32, gt=0, description="Prompts of a timed prefill.")
    prefill_repeats: int = Field(default=3, gt=0)
    skew_strength: float | None = Field(
        default=None, ge=0, description="Spread of expert popularity; None: calibrated."
    )
    skew_target_share: float = Field(
        default=0.75, gt=0, lt=1, description="Pool share to calibrate to. SlimWise, figure 2."
    )
    skew_target_batch: int = Field(default=64, gt=0)
    kernel_folder: Path | None = Field(
        default=None, description="Tuned settings of the MoE kernel, files of vLLM's own name."
    )
    capacity_tokens: int = Field(
        default=9216, gt=0, description="Request length for which the largest batch is reported."
    )
    seed: int = 0
    engine_options: dict[str, Any] = Field(default={}, description="Further arguments of vllm.LLM.")

    @model_validator(mode="after")
    def _engines_can_be_measured(self) -> "BenchPlan":
        """What is refused here would fail once the engine has started, or be measured never."""
        names = [engine.name for engine in self.engines]
        if len(set(names)) < len(names):
            raise ValueError(f"engines {', '.join(names)}: give each a name of its own")
        for engine in self.engines:
            for batch in engine.batches:
                self._check_batch(engine, batch)
            if self.kernel_folder is None and any(arm.tuned for arm in engine.arms):
                raise ValueError(f"engine {engine.name} has a tuned arm: set kernel_folder")
        return self

    def _check_batch(self, engine: EnginePlan, batch: int) -> None:
        if batch >= self.max_step_tokens:
            raise ValueError(
                f"engine {engine.name}: max_step_tokens={self.max_step_tokens} leaves no room for "
                f"prompts beside a batch of {batch}. Raise it, or measure a smaller batch."
            )
        if self.prompt_tokens(engine, batch) < 1:
            raise ValueError(
                f"engine {engine.name}, batch {batch}: context_tokens={self.context_tokens} is the "
                f"mean over {self.timed_steps(engine, batch)} steps, which starts below 1. Raise "
                "it, or lower rounds or block_steps."
            )

    def timed_steps(self, engine: EnginePlan, batch: int) -> int:
        """Steps that one measurement of a batch takes, untimed ones included."""
        steps = self.block_steps + self.settle_steps
        return engine.rounds[batch] * len(engine.arms) * steps

    def admission_steps(self, batch: int) -> int:
        """Steps in which the first request decodes already and a later prompt is still read."""
        return -(-batch * self.context_tokens // (self.max_step_tokens - batch))

    def prompt_tokens(self, engine: EnginePlan, batch: int) -> int:
        """Prompt length that makes the mean context of the steps the one that was asked for."""
        steps = self.timed_steps(engine, batch) + self.admission_steps(batch)
        return self.context_tokens - steps // 2

    def prefill_step(self) -> tuple[int, int]:
        """How many prompts one step reads of up to 8192 tokens, and how long each of them is.

        As long as the context, or as the step where the context is longer.
        """
        tokens = min(self.max_step_tokens, _PREFILL_STEP_TOKENS)
        length = min(self.context_tokens, tokens)
        return min(tokens // length, self.prefill_requests), length
