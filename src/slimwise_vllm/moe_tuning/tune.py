"""Tunes the kernel of one shape after another, and leaves out what is known already."""

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from slimwise_vllm.moe_tuning.candidates import KernelConfig, candidates
from slimwise_vllm.moe_tuning.kernel_files import default_config, shipped_config
from slimwise_vllm.moe_tuning.layer import ExpertLayer, ExpertShape, timed_steps
from slimwise_vllm.moe_tuning.plan import TuningPlan
from slimwise_vllm.moe_tuning.search import fastest

Row = Mapping[str, Any]
_DIGITS = 2


class KnownKernels:
    """Settings that rows tuned under these conditions hold for the plan's shapes, by batch."""

    def __init__(self, rows: Iterable[Row], conditions: Row) -> None:
        """The conditions are columns that a row must share, such as device and skew."""
        self._configs: dict[tuple[ExpertShape, int], KernelConfig] = {}
        for row in rows:
            if conditions.items() <= row.items():
                self.add(row)

    def add(self, row: Row) -> None:
        """Take the row's setting, in place of an earlier one of its shape and batch."""
        shape = ExpertShape(**row["shape"])
        self._configs[shape, row["batch"]] = dict(row["config"])

    def missing(self, shape: ExpertShape, plan: TuningPlan) -> list[int]:
        """Batches of the plan that nobody has tuned for the shape."""
        return [batch for batch in plan.batches if (shape, batch) not in self._configs]

    def of(self, shape: ExpertShape, plan: TuningPlan) -> dict[int, KernelConfig]:
        """The setting of each batch of the plan; all of them must be known."""
        return {batch: self._configs[shape, batch] for batch in plan.batches}


def tune_shape(
    shape: ExpertShape, batches: Iterable[int], plan: TuningPlan
) -> Iterable[dict[str, Any]]:
    """A row for each batch, as soon as it is tuned: settings and times of a layer's experts."""
    layer = ExpertLayer(shape, plan.skew_strength, plan.seed)
    for batch in batches:
        steps = layer.steps(batch, plan.num_routings)
        found = fastest(
            lambda config, steps=steps: timed_steps(steps, config),
            candidates(tokens_per_expert(shape, batch)),
            _references(shape, batch),
            finalists=plan.finalists,
            rounds=plan.rounds,
        )
        microseconds = {"tuned": found.tuned_us, **found.reference_us}
        yield {
            "batch": batch,
            "distinct_experts": statistics.mean(step.num_distinct for step in steps),
            "config": found.config,
            "layer_us": {name: round(us, _DIGITS) for name, us in microseconds.items()},
        }


def tokens_per_expert(shape: ExpertShape, batch: int) -> float:
    """Mean over the experts of a layer."""
    return batch * shape.top_k / shape.num_experts


def _references(shape: ExpertShape, batch: int) -> dict[str, KernelConfig]:
    shipped = shipped_config(shape, batch)
    default = {"default": default_config(shape, batch)}
    return default if shipped is None else default | {"shipped": shipped}
