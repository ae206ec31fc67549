"""Measures one engine of a benchmark plan and writes each row as soon as it is known.

How the noise stays far below the overhead that is looked for (0.15 ms of a step of about 20 ms):
all arms run in one engine, on the same requests and the same KV, switched every few steps. A block
is block_steps decode steps of one arm, after settle_steps untimed ones; a round is one block of
every arm, its order reversed from round to round, so that neither the growing context nor a drift
of the clock prefers an arm. An arm is compared with the unhooked one round by round; the median of
these differences is reported, with its standard error from their median absolute deviation. The
garbage collector sleeps meanwhile. Prompts are as much shorter as the steps are many, so the mean
context is the same for every engine and batch.
"""

import gc
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from slimwise.core.skew import expert_scales
from slimwise.core.traffic import expected_distinct_experts
from slimwise.core.vocabulary import Phase, Routing, ServingMode
from slimwise_vllm.decode_bench.engine import StartedEngine, engine_facts
from slimwise_vllm.decode_bench.folders import expert_widths, moe_shape, vocabulary_size
from slimwise_vllm.decode_bench.kernel_choice import KernelChoice
from slimwise_vllm.decode_bench.live_batch import LiveBatch, synchronise
from slimwise_vllm.decode_bench.plan import Arm, BenchPlan, EnginePlan
from slimwise_vllm.decode_bench.switch import ArmSwitch
from slimwise_vllm.router_skew import RouterSkew
from slimwise_vllm.token_pools import PHASES

WriteRow = Callable[[dict[str, Any]], None]
_CALIBRATION_PROMPT_TOKENS = 32
_CALIBRATION_TRIALS = 10
_STRONGEST_SKEW = 4.0
_NORMAL_MAD = 1.4826
_MEDIAN_LOSS = 1.2533
"""Standard error of a median against that of a mean, for normal noise."""


class EngineMeasurement:
    """One engine under measurement; measure() is all there is to call."""

    def __init__(
        self, plan: BenchPlan, engine: EnginePlan, started: StartedEngine, write: WriteRow
    ) -> None:
        self._plan, self._engine, self._write = plan, engine, write
        self._started = started
        self._num_layers, _, self._top_k = moe_shape(plan.model_config_file)
        self._live = LiveBatch(started.llm, vocabulary_size(plan.model_config_file), plan.seed)
        _, expert_width = expert_widths(plan.model_config_file)
        kernels = KernelChoice(plan.kernel_folder, engine.num_experts, expert_width)
        self._switch = ArmSwitch(started.worker, engine.arms, list(engine.pools), kernels)

    def measure(self, skew_strength: float | None) -> None:
        """Write rows of the engine, its prefill, and each batch under each routing."""
        self._row("engine", **engine_facts(self._started, self._plan))
        self._measure_prefill()
        if Routing.UNIFORM in self._engine.routings:
            self._measure_batches(Routing.UNIFORM)
        if Routing.SKEWED in self._engine.routings:
            self._skew_routers(skew_strength)
            self._measure_batches(Routing.SKEWED)

    def _skew_routers(self, strength: float | None) -> None:
        model = self._started.worker.model_runner.get_model()
        num_experts = self._engine.num_experts
        skew = RouterSkew(model, self._num_layers, num_experts, self._plan.seed)
        if strength is None:
            strength = self._calibrate(skew)
        skew.apply(expert_scales(self._plan.num_experts, num_experts, strength))

    def _measure_batches(self, routing: Routing) -> None:
        for batch in self._engine.batches:
            self._measure_batch(batch, routing)

    def _measure_prefill(self) -> None:
        """Prompt tokens per second of each arm; a first pass of each compiles its kernels."""
        requests = self._plan.prefill_requests
        length = self._plan.context_tokens
        arms = [arm for arm in self._engine.arms if not arm.coverage]
        seconds: dict[Arm, list[float]] = {arm: [] for arm in arms}
        for arm in arms:
            self._switch.to(_with_pruned_prefill(arm))
            self._live.prefill(requests, length, _extra_args(arm))
        self._write_prefill_coverage()
        for repeat in range(self._plan.prefill_repeats):
            for arm in arms if repeat % 2 else reversed(arms):
                self._switch.to(_with_pruned_prefill(arm))
                seconds[arm].append(self._live.prefill(requests, length, _extra_args(arm)))
        for arm in arms:
            rates = [requests * length / taken for taken in seconds[arm]]
            self._row(
                "prefill",
                arm=_with_pruned_prefill(arm).name,
                kernels=self._switch.kernels(arm),
                num_kept=self._num_kept(arm),
                requests=requests,
                prompt_tokens=length,
                prefill_tokens_per_s=round(statistics.median(rates), 1),
                spread_tokens_per_s=round(max(rates) - min(rates), 1),
            )

    def _write_prefill_coverage(self) -> None:
        """The experts that one step of prompts reads."""
        batch, length = self._plan.prefill_step()
        for arm in (arm for arm in self._engine.arms if arm.coverage):
            self._switch.to(arm)
            self._switch.coverage.counts_HLE.zero_()
            self._live.prefill(batch, length, _extra_args(arm))
            step = Phase.PREFILL, batch * (length - 1)
            found = self._distinct(Phase.PREFILL), 1
            self._coverage_row(arm, Routing.UNIFORM, step, found)

    def _calibrate(self, skew: RouterSkew) -> float:
        """The strength of skew at which a decode step reads the target share of all experts."""
        batch, target = self._plan.skew_target_batch, self._plan.skew_target_share
        counting = Arm(mode=ServingMode.FULL, coverage=True)
        most_steps = (_CALIBRATION_TRIALS + 1) * self._plan.coverage_steps * 2
        self._switch.to(counting)
        self._live.begin(batch, _CALIBRATION_PROMPT_TOKENS, most_steps, _extra_args(counting))
        low, high, share = 0.0, _STRONGEST_SKEW, 1.0
        for _ in range(_CALIBRATION_TRIALS):
            strength = (low + high) / 2
            skew.apply(expert_scales(self._plan.num_experts, self._engine.num_experts, strength))
            share = self._mean_distinct(self._plan.coverage_steps) / self._engine.num_experts
            low, high = (strength, high) if share > target else (low, strength)
        self._live.end()
        strength = (low + high) / 2
        self._row(
            "calibration",
            batch=batch,
            skew_strength=strength,
            pool_share_measured=round(share, 4),
            pool_share_target=target,
        )
        return strength

    def _measure_batch(self, batch: int, routing: Routing) -> None:
        plan, engine = self._plan, self._engine
        coverage_arms = [arm for arm in engine.arms if arm.coverage]
        steps = plan.timed_steps(engine, batch)
        spare = (len(coverage_arms) + 1) * plan.coverage_steps + plan.settle_steps
        spare += plan.admission_steps(batch)
        first = engine.arms[0]
        self._switch.to(first)
        self._live.begin(
            batch, plan.prompt_tokens(engine, batch), steps + spare, _extra_args(first)
        )
        with _no_garbage_collection():
            context = self._live.mean_context_tokens() + steps / 2
            step_ms = self._timed_rounds(engine.rounds[batch])
        self._live.expect(batch)
        self._write_timings(batch, routing, step_ms, context)
        for arm in coverage_arms:
            self._switch.to(arm)
            self._live.step(plan.settle_steps)
            self._write_decode_coverage(batch, routing, arm)
        self._live.end()

    def _timed_rounds(self, rounds: int) -> dict[Arm, list[float]]:
        """Mean step of each block, ms, by arm and in the order of the rounds."""
        step_ms: dict[Arm, list[float]] = {arm: [] for arm in self._engine.arms}
        for index in range(rounds):
            for arm in reversed(self._engine.arms) if index % 2 else self._engine.arms:
                self._switch.to(arm)
                self._live.step(self._plan.settle_steps)
                seconds = self._live.step(self._plan.block_steps)
                step_ms[arm].append(seconds / self._plan.block_steps * 1e3)
        return step_ms

    def _write_timings(
        self,
        batch: int,
        routing: Routing,
        step_ms: dict[Arm, list[float]],
        context: float,
    ) -> None:
        for arm, blocks in step_ms.items():
            baseline = step_ms.get(Arm(tuned=arm.tuned))
            step = statistics.median(blocks)
            row: dict[str, Any] = {
                "kernels": self._switch.kernels(arm),
                "routing": routing,
                "batch": batch,
                "batch_running": batch,
                "num_kept": self._num_kept(arm),
                "context_tokens": round(context),
                "step_ms": round(step, 4),
                "step_error_ms": round(median_error(blocks), 4),
                "tokens_per_s_per_user": round(1e3 / step, 2),
                "tokens_per_s_per_gpu": round(batch * 1e3 / step, 1),
                "block_step_ms": [round(block, 4) for block in blocks],
            }
            if baseline is not None and arm.mode is not None:
                differences = [a - b for a, b in zip(blocks, baseline, strict=True)]
                row["overhead_ms"] = round(statistics.median(differences), 4)
                row["overhead_error_ms"] = round(median_error(differences), 4)
            self._row("decode", arm=arm.name, **row)

    def _write_decode_coverage(self, batch: int, routing: Routing, arm: Arm) -> None:
        distinct = self._mean_distinct(self._plan.coverage_steps)
        self._coverage_row(
            arm, routing, (Phase.DECODE, batch), (distinct, self._plan.coverage_steps)
        )

    def _coverage_row(
        self, arm: Arm, routing: Routing, step: tuple[Phase, int], found: tuple[float, int]
    ) -> None:
        phase, batch = step
        distinct, num_steps = found
        pruned = arm.mode is not None and arm.mode.prunes(phase)
        num_kept = self._num_kept(arm) if pruned else self._engine.num_experts
        expected = expected_distinct_experts(num_kept, self._top_k, batch)
        self._row(
            "coverage",
            arm=arm.name,
            routing=routing,
            phase=phase,
            batch=batch,
            num_kept=num_kept,
            num_steps=num_steps,
            distinct_experts=round(distinct, 3),
            pool_share_measured=round(distinct / num_kept, 4),
            pool_share_uniform=round(expected / num_kept, 4),
        )

    def _mean_distinct(self, num_steps: int) -> float:
        """Distinct experts that the decode tokens of a step reach, mean of layers and steps."""
        found = []
        synchronise()
        for _ in range(num_steps):
            self._switch.coverage.counts_HLE.zero_()
            self._live.step(1)
            synchronise()
            found.append(self._distinct(Phase.DECODE))
        return statistics.mean(found)

    def _distinct(self, phase: Phase) -> float:
        counts_LE = self._switch.coverage.counts_HLE[PHASES.index(phase)]
        return (counts_LE > 0).sum(-1).double().mean().item()

    def _num_kept(self, arm: Arm) -> int:
        """Experts a layer that a decode token of the arm may reach."""
        return self._engine.num_experts if arm.pool is None else self._engine.pools[arm.pool]

    def _row(self, kind: str, **values: Any) -> None:
        engine = {"engine": self._engine.name, "num_experts": self._engine.num_experts}
        self._write({"kind": kind, **engine, **values})


def median_error(values: Sequence[float]) -> float:
    """Standard error of the median of the values, from their median absolute deviation."""
    centre = statistics.median(values)
    deviation = _NORMAL_MAD * statistics.median(abs(value - centre) for value in values)
    return _MEDIAN_LOSS * deviation / len(values) ** 0.5


def _extra_args(arm: Arm) -> dict[str, str]:
    """What a request of the arm would ask the server for."""
    if arm.mode is None:
        return {}
    pool = {} if arm.pool is None else {"slimwise_pool": arm.pool}
    return {"slimwise_mode": arm.mode.value, **pool}


def _with_pruned_prefill(arm: Arm) -> Arm:
    """The arm whose prefill prunes too, if its decode does: slimwise prefills like full."""
    if arm.pool is None:
        return arm
    return Arm(mode=ServingMode.PRUNED, pool=arm.pool, tuned=arm.tuned)


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
